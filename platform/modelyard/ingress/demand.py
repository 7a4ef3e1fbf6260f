"""What one ingress asks of the fleet: its requests under way by version, and its wishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from modelyard.control.ingress_post import Wish


class Demand:
    """Counts and wishes by version. Posted to the board, where scaling reads their sums."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._in_flight: dict[str, int] = {}
        self._wishes: dict[str, float] = {}
        self.swapped: frozenset[str] = frozenset()  # models of swap areas: control loads them

    @contextmanager
    def under_way(self, target: Callable[[], str]) -> Iterator[None]:
        """A request, while the body runs. target: its version, which `moved` may have changed."""
        self._add(target(), 1)
        try:
            yield
        finally:
            self._add(target(), -1)

    def moved(self, before: str, now: str) -> None:
        """A request goes to another version than it was counted under."""
        self._add(before, -1)
        self._add(now, 1)

    def _add(self, version: str, requests: int) -> None:
        left = self._in_flight.get(version, 0) + requests
        if left:
            self._in_flight[version] = left
        else:
            del self._in_flight[version]

    def wish(self, version: str, ttl_s: float) -> None:
        """Ask for a replica of a version that has none, for the next `ttl_s` seconds."""
        until = self._now() + ttl_s
        self._wishes[version] = max(until, self._wishes.get(version, until))

    @property
    def in_flight(self) -> tuple[tuple[str, int], ...]:
        return tuple(sorted(self._in_flight.items()))

    @property
    def wishes(self) -> tuple[Wish, ...]:
        """Those that have not run out."""
        now = self._now()
        self._wishes = {version: until for version, until in self._wishes.items() if until > now}
        return tuple(
            Wish(version, 1, until - now, version in self.swapped)
            for version, until in self._wishes.items()
        )
