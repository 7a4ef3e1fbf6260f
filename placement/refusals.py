"""Apps that a deploy must not drop, and why: each would take requests, or a way back, with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from modelyard.config.table import Table
from modelyard.control.published import FOR_MOVE
from modelyard.routing.fleet import version_of
from placement.serving import Platform

_ROLLOUT: Final = "rollout:"  # how its author does that control wishes for a rollout


@dataclass(frozen=True, slots=True)
class Refusal:
    """why: what the app still does, and what to do first."""

    app: str
    why: str

    def __str__(self) -> str:
        return f"{self.app} must not be dropped: {self.why}"


def refusals(
    dropped: Sequence[str], kept: Mapping[str, int], wanted: Table, platform: Platform
) -> tuple[Refusal, ...]:
    """Of the apps that a file would delete. kept: the apps that it has, and the least replicas of
    each. wanted: its table."""
    versions_kept = {version_of(app) for app in kept}
    found = []
    for app in dropped:
        version = version_of(app)
        if version in versions_kept:
            own = {one: least for one, least in kept.items() if version_of(one) == version}
            reasons = [*_moves(version, platform), *_cell(app, own, platform)]
        else:
            reasons = [
                *_moves(version, platform),
                *_unknown(version, platform),
                *_carries(version, wanted, platform),
                *_way_back(version, platform),
            ]
        found += [Refusal(app, why) for why in reasons[:1]]
    return tuple(found)


def _moves(version: str, platform: Platform) -> Iterator[str]:
    for one in platform.overrides:
        if (
            one.kind == "drain"
            and one.reason.startswith(FOR_MOVE)
            and version_of(one.target) == version
        ):
            yield (
                f"a move of {version} goes on ({one.reason}, by {one.author}): let it end, or "
                f"abort it with `modelyard override remove`"
            )


def _cell(app: str, kept: Mapping[str, int], platform: Platform) -> Iterator[str]:
    """A cell whose version stays. kept: the version's cells that do."""
    version = version_of(app)
    if platform.unknown:
        yield (
            f"{platform.unknown}, and so not whether the other cells of {version} are ready: try "
            "again when `modelyard status` shows them"
        )
        return
    if platform.ready(app):
        if platform.published is None:
            yield f"control has not spoken yet, and a move of {version} may go on: try again then"
        stay = [one for one in kept if not platform.drained(one)]
        ready, least = sum(map(platform.ready, stay)), max(1, sum(kept[one] for one in stay))
        if ready < least:
            yield (
                f"the cells of {version} that stay and take requests have {ready} of at least "
                f"{least} replicas ready: deploy them beside it, and drop it when they are"
            )
    if count := platform.ongoing(app):
        yield (
            f"{count} requests are in this cell: `modelyard override add drain {app}` first, and "
            "drop it when they have ended"
        )


def _unknown(version: str, platform: Platform) -> Iterator[str]:
    """What cannot be known counts as carrying: what is dropped wrongly does not come back."""
    routes = platform.table.routes if platform.table else {}
    named = {a: r for a, r in routes.items() if version in (r.stable, r.canary)}
    if platform.unknown and (named or platform.table is None):
        where = f"in the route of {', '.join(sorted(named))}" if named else "maybe in a route"
        yield (
            f"it is {where}, and {platform.unknown}, so nobody knows what it answers: try again "
            "when `modelyard status` shows it"
        )
    elif platform.published is None and platform.serves(version):
        for alias, route in named.items():
            if route.rollout is not None:
                yield (
                    f"control has not said the weight of {route.rollout.id}, the rollout of "
                    f"{alias}: try again when `modelyard status` shows it"
                )


def _carries(version: str, wanted: Table, platform: Platform) -> Iterator[str]:
    busy = platform.in_flight(version)
    for alias, route in (platform.table.routes if platform.table else {}).items():
        rollout = route.rollout
        percent = platform.weight(rollout.id) if rollout is not None else 0.0
        share = {route.stable: 100.0 - percent}
        if route.canary is not None:
            share[route.canary] = percent
        # An alias that goes too is meant; then only what is being answered counts.
        kept = alias in wanted.routes and platform.serves(version)
        if share.get(version, 0.0) > 0 and (kept or busy):
            arm = "stable version" if version == route.stable else "canary"
            yield (
                f"it is the {arm} of {alias}, with {share[version]:g} % of its requests: deploy it "
                "beside the version that follows, move the route, and drop it then"
            )
    if busy:
        yield f"{busy} requests to {version} are in flight: drop it when they have ended"


def _way_back(version: str, platform: Platform) -> Iterator[str]:
    """Control holds a floor under a rolled back canary that is kept, and under a stable version
    that may have to take everything back."""
    for one in platform.overrides:
        if one.kind == "floor" and one.target == version and one.author.startswith(_ROLLOUT):
            yield (
                f"{one.author} keeps it for {one.left_s:.0f} s more ({one.reason}): wait, or end "
                "the rollout"
            )
