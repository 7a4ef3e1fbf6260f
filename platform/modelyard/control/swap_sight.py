"""What control sees of the models that share memory, out of the board's readings."""

from __future__ import annotations

from collections.abc import Mapping

from modelyard.config.swap import SwapArea
from modelyard.control.published import EVERYTHING, OF_SWAP_AREA, Override
from modelyard.control.reading import Reading
from modelyard.control.report import ControlReport
from modelyard.lifecycle.phases import START, Phase
from modelyard.lifecycle.report import Post
from modelyard.lifecycle.silence import ALIVE_S, is_there
from modelyard.routing.fleet import DEFAULT_LOAD_S, version_of
from modelyard.scaling.area import Moment, Presence, Residency, Seen


class SwapSight:
    """One per control. Load times and what was answered are remembered; the rest is read anew."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._load_s: dict[str, float] = {}
        self._ready: set[str] = set()
        self._totals: dict[str, dict[str, int]] = {}
        self._answered: dict[str, int] = {}
        self._busy_at: dict[str, float] = {}
        self._met_until: dict[str, float] = {}
        self._apps: dict[str, tuple[str, ...]] = {}

    def answered(self, report: ControlReport) -> None:
        """An ingress's totals. Its first report only says where it stands."""
        totals: dict[str, int] = {}
        for key, amounts in report.usage:
            served = amounts.requests - amounts.refused
            totals[key.version] = totals.get(key.version, 0) + served
        before = self._totals.get(report.ingress)
        self._totals[report.ingress] = totals
        for version, served in totals.items() if before is not None else ():
            more = max(served - before.get(version, 0), 0) if before is not None else 0
            self._answered[version] = self._answered.get(version, 0) + more

    def apps(self, version: str) -> tuple[str, ...]:
        """Those of its cells, as far as they posted."""
        return self._apps.get(version, (version,))

    def moments(
        self,
        areas: Mapping[str, SwapArea],
        decided: Mapping[str, Residency],
        reading: Reading,
        now: float,
    ) -> dict[str, Moment]:
        """Each area as it is. decided: of each area. A wish for a model that must go is a new
        one."""
        posts = [post for post in reading.posts if _has_memory(post)]
        waiting = _waiting(reading)
        self._note_busy(reading, posts, waiting, now)
        answered, self._answered = self._answered, {}
        living = {entry.post.ingress for entry in reading.ingresses}
        self._totals = {one: kept for one, kept in self._totals.items() if one in living}
        by_version: dict[str, list[Post]] = {}
        for post in posts:
            by_version.setdefault(version_of(post.report.app), []).append(post)
        made = {}
        for name, area in areas.items():
            models, known = {}, decided[name]
            for version, memory_gb in area.models.items():
                own = by_version.get(version, [])
                presence = _presence(own)
                self._note_posts(version, own, presence, known.admitted.get(version, now), now)
                held, barred = _asked_by_others(version, reading)
                models[version] = Seen(
                    version,
                    memory_gb,
                    self._load_s.get(version, DEFAULT_LOAD_S),
                    presence,
                    idle_s=now - self._busy_at.get(version, self._began),
                    requests=answered.get(version, 0),
                    wished=self._is_wished(
                        version, presence, version in known.leaving, reading, now
                    ),
                    held=held,
                    barred=barred,
                )
            made[name] = Moment(area.memory_gb, models, now, _is_peak(name, area, posts, waiting))
        return made

    def _note_posts(
        self, version: str, posts: list[Post], presence: Presence, admitted_at: float, now: float
    ) -> None:
        """A load lasts from its admission until a replica is ready: a replica's own phases leave
        out how long its place, its process and its imports took. They count where this control
        did not see the load begin. Idle begins when it is ready."""
        if posts:
            self._apps[version] = tuple(sorted({post.report.app for post in posts}))
        if presence is not Presence.READY:
            self._ready.discard(version)
        elif version not in self._ready:
            self._ready.add(version)
            self._busy_at[version] = now
            phases_s = (
                sum(s for _, s in post.report.phases)
                for post in posts
                if post.report.phase is Phase.READY
            )
            self._load_s[version] = max(now - admitted_at, *phases_s)

    def _note_busy(
        self, reading: Reading, posts: list[Post], waiting: Mapping[str, int], now: float
    ) -> None:
        busy = {version for version, requests in self._answered.items() if requests}
        busy |= {version for version, requests in waiting.items() if requests}
        busy |= {version_of(post.report.app) for post in posts if post.report.ongoing}
        for entry in reading.ingresses:
            if entry.age_s < ALIVE_S:
                busy |= {version for version, requests in entry.post.in_flight if requests}
        self._busy_at |= dict.fromkeys(busy, now)

    def _is_wished(
        self, version: str, presence: Presence, leaves: bool, reading: Reading, now: float
    ) -> bool:
        """A wish outlasts the load that it brought: only a later one asks for another."""
        left_s = max((w.left_s for w in reading.wishes if w.version == version), default=0.0)
        if presence is Presence.READY and not leaves:
            self._met_until[version] = now + left_s
            return False
        return left_s > 0 and now + left_s > self._met_until.get(version, now) + 1.0


def _has_memory(post: Post) -> bool:
    """Until it is silent for long; the process of one that failed goes at once."""
    phase = post.report.phase
    return is_there(phase, post.age_s) and (phase is not Phase.FAILED or post.age_s < ALIVE_S)


def _presence(posts: list[Post]) -> Presence:
    """One that failed counts as starting: Serve puts another in its place."""
    phases = {post.report.phase for post in posts}
    if Phase.READY in phases:
        return Presence.READY
    if phases & {*START, Phase.FAILED}:
        return Presence.STARTING
    return Presence.LEAVING if phases else Presence.ABSENT


def _waiting(reading: Reading) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in reading.ingresses:
        for lane, _, requests in entry.post.waiting if entry.age_s < ALIVE_S else ():
            version = version_of(lane)
            found[version] = found.get(version, 0) + requests
    return found


def _is_peak(name: str, area: SwapArea, posts: list[Post], waiting: Mapping[str, int]) -> bool:
    """Whether a load would slow models of the same place down for which requests wait."""
    own = [post for post in posts if version_of(post.report.app) in area.models]
    places = {name, *(post.report.place for post in own)} - {""}
    there = {version_of(post.report.app) for post in posts if post.report.place in places}
    return any(waiting.get(version, 0) for version in there | set(area.models))


def _asked_by_others(version: str, reading: Reading) -> tuple[bool, bool]:
    """Whether an operator or a rollout wants it loaded or as it is, and whether not loaded."""
    held = barred = False
    for one in reading.published.overrides if reading.published is not None else ():
        if one.author.startswith(OF_SWAP_AREA) or one.target not in (version, EVERYTHING):
            continue
        freezes = one.kind == "freeze"
        held |= freezes or (one.kind == "floor" and _value(one) > 0)
        barred |= freezes or (one.kind == "ceiling" and _value(one) == 0)
    return held, barred


def _value(override: Override) -> float:
    return override.value or 0.0
