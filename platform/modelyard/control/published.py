"""What control publishes to every ingress: weights, revoked keys and overrides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

OverrideKind = Literal["limit", "floor", "ceiling", "freeze", "drain"]

# Before an alias in the target of a `limit`; no tenant's name has a colon.
OF_ROUTE: Final = "route:"
# Before a rollout's id in the target of a `freeze`, which without it is a version or everything.
OF_ROLLOUT: Final = "rollout:"
EVERYTHING: Final = "*"
# Before a swap area, in the author of what control wishes for its models; no key's id has a colon.
OF_SWAP_AREA: Final = "swap:"
# How the reason of a `drain` begins that moves a cell's replicas to another place.
FOR_MOVE: Final = "move:"
# Before a replica's id in the target of a `drain`; no app's name has a colon.
OF_REPLICA: Final = "replica:"


class RouteLimit(NamedTuple):
    """A limit of a route: the alias, and which of RouteLimits."""

    alias: str
    field: str


@dataclass(frozen=True, slots=True)
class Override:
    """An operator's word that beats the file until it expires.

    kind and target: `limit`: "tenant/field" of Limits, or "route:alias/field", where an alias may
    hold slashes; `floor` and `ceiling`: a version, value replicas; `freeze`: a version whose
    scaling holds, "rollout:id", which does not move by itself, or "*", everything of both kinds;
    `drain`: the app of a cell, which gets no new requests, or "replica:id", a replica that finishes
    what it holds and leaves.
    author: the id of the key that set it, or "rollout:id" or "swap:area" for what control wishes
    for a rollout or for models that share memory.
    left_s: seconds left when this was published; it travels instead of a wall time because clocks
    differ between nodes.
    """

    kind: OverrideKind
    target: str
    value: float | None
    author: str
    reason: str
    left_s: float

    @property
    def of_route(self) -> RouteLimit | None:
        """What a limit of a route is of; None for every other override."""
        return route_limit(self.target) if self.kind == "limit" else None


def route_limit(target: str) -> RouteLimit | None:
    """The target of a `limit` taken apart; None where it names a tenant."""
    if not target.startswith(OF_ROUTE):
        return None
    alias, _, field = target.removeprefix(OF_ROUTE).rpartition("/")
    return RouteLimit(alias, field)


@dataclass(frozen=True, slots=True)
class Published:
    """One revision of control's word.

    weights: (rollout id, percent of conversations on the canary, 0..100). finished: the rollouts
    among them that never start again. shadows: (rollout id, percent of requests to the stable
    version that are copied to the canary). loads: (version, seconds until it should answer), of
    models that wait for memory or load into it. revoked: key ids. held: why no rollout may move on
    its own; empty when they may. stored: the revision that control's store had when this was said,
    None for this one: a rollback is told before it is stored, and nothing else is.
    """

    epoch: int
    revision: int
    weights: tuple[tuple[str, float], ...] = ()
    revoked: frozenset[str] = frozenset()
    overrides: tuple[Override, ...] = ()
    finished: frozenset[str] = frozenset()
    held: str = ""
    shadows: tuple[tuple[str, float], ...] = ()
    stored: int | None = None
    loads: tuple[tuple[str, float], ...] = ()

    @property
    def stored_order(self) -> tuple[int, int]:
        """What the store must have at least: with less it was lost, or is an older copy."""
        return self.epoch, self.revision if self.stored is None else self.stored

    @property
    def order(self) -> tuple[int, int]:
        """The higher one wins: an older control may still be talking."""
        return self.epoch, self.revision

    def weight(self, rollout: str) -> float | None:
        """Percent on the canary; None for a rollout that control has not begun."""
        return dict(self.weights).get(rollout)


def aged(published: Published, age_s: float) -> Published:
    """As it is `age_s` later: an override ends on time with no control to take it back."""
    left = (replace(one, left_s=one.left_s - age_s) for one in published.overrides)
    return replace(published, overrides=tuple(one for one in left if one.left_s > 0))


def newer(one: Published | None, other: Published | None) -> Published | None:
    """The later of two. Of the same revision the second: its seconds left are fresher."""
    if one is None or other is None:
        return one or other
    return one if one.order > other.order else other
