"""What the board says about a version that matters to its scaling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from modelyard.control.ingress_post import IngressPost
from modelyard.control.published import EVERYTHING, FOR_MOVE, OF_SWAP_AREA, Override, Published
from modelyard.control.reading import Reading
from modelyard.lifecycle.phases import START, Phase
from modelyard.lifecycle.report import Post
from modelyard.lifecycle.silence import is_there
from modelyard.routing.fleet import version_of

# An ingress posts five times a second. One that is silent for so long is dead, or its loop is
# stuck: what waited there is not counted for ever.
INGRESS_SILENT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Bound:
    """A number of replicas that someone asked for, and the seconds that it still holds."""

    replicas: int
    author: str
    left_s: float


@dataclass(frozen=True, slots=True)
class Drain:
    """A cell that gets no new requests. stays: its replicas do though they are idle, because who
    drained it says when they go: a move drops the cell, and control sets a ceiling of 0."""

    app: str
    left_s: float
    stays: bool = False


@dataclass(frozen=True, slots=True)
class VersionSignal:
    """One version: requests that wait at all ingresses, and the bounds in force.

    wish: an ingress's, whose callers are told to come back (its author is empty). freeze: scaling
    holds; its number means nothing.
    """

    waiting: float = 0
    wish: Bound | None = None
    floor: Bound | None = None
    ceiling: Bound | None = None
    freeze: Bound | None = None
    drained: tuple[Drain, ...] = ()

    def aged(self, age_s: float) -> VersionSignal:
        """As it is `age_s` seconds later: bounds end on time."""
        return VersionSignal(
            waiting=self.waiting,
            wish=_aged(self.wish, age_s),
            floor=_aged(self.floor, age_s),
            ceiling=_aged(self.ceiling, age_s),
            freeze=_aged(self.freeze, age_s),
            drained=tuple(
                replace(one, left_s=one.left_s - age_s)
                for one in self.drained
                if one.left_s > age_s
            ),
        )


@dataclass(frozen=True, slots=True)
class BoardSignal:
    """A whole reading, taken apart by version. up_s: seconds that the board had run by then.
    freeze: of every version, those included that nobody has named yet. there: replicas of each app
    that start or serve."""

    up_s: float
    versions: dict[str, VersionSignal] = field(default_factory=dict)
    freeze: Bound | None = None
    there: dict[str, int] = field(default_factory=dict)

    def of_version(self, version: str) -> VersionSignal:
        known = self.versions.get(version, VersionSignal())
        return known if self.freeze is None else replace(known, freeze=self.freeze)

    @classmethod
    def of(cls, reading: Reading) -> BoardSignal:
        fresh = [entry.post for entry in reading.ingresses if entry.age_s < INGRESS_SILENT_S]
        versions = _waiting(fresh)
        for wish in reading.wishes:
            if wish.by_control:
                continue
            bound = Bound(wish.replicas, "", wish.left_s)
            known = versions.get(wish.version, VersionSignal())
            versions[wish.version] = replace(known, wish=_larger(known.wish, bound))
        freeze = None
        for override in _in_force(reading.published):
            if (override.kind, override.target) == ("freeze", EVERYTHING):
                freeze = Bound(0, override.author, override.left_s)
                continue
            version = version_of(override.target)  # of a drain, which names an app
            known = versions.get(version, VersionSignal())
            versions[version] = _bounded(known, override)
        return cls(reading.up_s, versions, freeze, _there(reading.posts))


def _there(posts: Iterable[Post]) -> dict[str, int]:
    """One that failed counts: it has a place, and Serve starts another there."""
    found: dict[str, int] = {}
    for post in posts:
        phase = post.report.phase
        if phase in {*START, Phase.READY, Phase.FAILED} and is_there(phase, post.age_s):
            found[post.report.app] = found.get(post.report.app, 0) + 1
    return found


def _waiting(posts: Iterable[IngressPost]) -> dict[str, VersionSignal]:
    total: dict[str, int] = {}
    for post in posts:
        for lane, _, requests in post.waiting:
            version = version_of(lane)
            total[version] = total.get(version, 0) + requests
    return {version: VersionSignal(waiting=requests) for version, requests in total.items()}


def _in_force(published: Published | None) -> list[Override]:
    """The board counts their seconds down: what control published runs out without it too."""
    overrides = published.overrides if published is not None else ()
    return [override for override in overrides if override.left_s > 0]


def _bounded(known: VersionSignal, override: Override) -> VersionSignal:
    bound = Bound(int(override.value or 0), override.author, override.left_s)
    match override.kind:
        case "floor":
            return replace(known, floor=_larger(known.floor, bound))
        case "ceiling":
            return replace(known, ceiling=_smaller(known.ceiling, bound))
        case "freeze":
            return replace(known, freeze=bound)
        case "drain":
            stays = override.reason.startswith(FOR_MOVE) or override.author.startswith(OF_SWAP_AREA)
            drain = Drain(override.target, override.left_s, stays)
            return replace(known, drained=(*known.drained, drain))
    return known


def _larger(one: Bound | None, other: Bound) -> Bound:
    return one if one is not None and one.replicas > other.replicas else other


def _smaller(one: Bound | None, other: Bound) -> Bound:
    return one if one is not None and one.replicas < other.replicas else other


def _aged(bound: Bound | None, age_s: float) -> Bound | None:
    if bound is None or bound.left_s <= age_s:
        return None
    return replace(bound, left_s=bound.left_s - age_s)
