"""Control's last word as one ingress has it: in force until a later one comes, and aging."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from modelyard.control.published import (
    OF_REPLICA,
    OF_SWAP_AREA,
    Override,
    Published,
    RouteLimit,
    aged,
    newer,
)
from modelyard.routing.steering import UNSTEERED, Steering


class InForce:
    """Without any word: stable everywhere, nothing revoked, no override.

    It outlives the board's and control's silence: a rollback or a revocation must not be undone by
    a process that died. Overrides end on time meanwhile.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last: Published | None = None
        self._at = now()
        self._is_ahead = False
        self._steering = UNSTEERED
        self._until = inf  # when the next override of those that steer ends

    def take(self, published: Published | None) -> bool:
        """Take what the board holds; True when it says something else than before."""
        last = self._last
        self._is_ahead = last is not None and (published is None or published.order < last.order)
        kept = newer(last, published)
        if kept is None or kept is not published:
            return False
        self._last, self._at = kept, self._now()
        self._steer(kept)
        return last is None or last.order != kept.order

    @property
    def steering(self) -> Steering:
        """What routing asks for with each request: made when a word comes and when an override
        ends, not each time."""
        if self._last is not None and self._now() >= self._until:
            self._steer(self._last)
        return self._steering

    @property
    def to_tell(self) -> Published | None:
        """What the board does not know: it lost its memory, as control may have."""
        if self._last is None or not self._is_ahead:
            return None
        return aged(self._last, self._now() - self._at)

    @property
    def order(self) -> tuple[int, int]:
        """(epoch, revision); (0, 0) before the first word."""
        return self._last.order if self._last else (0, 0)

    @property
    def word(self) -> Published | None:
        """The last word itself, as it came: its overrides have aged since."""
        return self._last

    @property
    def revoked(self) -> frozenset[str]:
        return self._last.revoked if self._last else frozenset()

    @property
    def overrides(self) -> tuple[Override, ...]:
        """Those that have not run out."""
        if self._last is None or not self._last.overrides:
            return ()
        return aged(self._last, self._now() - self._at).overrides

    @property
    def route_limits(self) -> dict[RouteLimit, int]:
        """What may wait, by route and field, in place of the file's word. Ages every override: read
        it a few times a second, not for each request."""
        return {
            route: int(one.value)
            for one in self.overrides
            if (route := one.of_route) is not None and one.value is not None
        }

    def _steer(self, word: Published) -> None:
        age_s = self._now() - self._at
        drains = [one for one in aged(word, age_s).overrides if _closes_an_app(one)]
        # The first instant at which aged() leaves it out.
        self._until = min((self._at + one.left_s + age_s for one in drains), default=inf)
        self._steering = Steering(
            dict(word.weights),
            frozenset(one.target for one in drains),
            word.finished,
            dict(word.shadows),
            frozenset(one.target for one in drains if one.author.startswith(OF_SWAP_AREA)),
            dict(word.loads),
        )


def _closes_an_app(one: Override) -> bool:
    return one.kind == "drain" and not one.target.startswith(OF_REPLICA)
