"""What control sees of a rollout at one moment: the table, the board, its evidence. Pure."""

from __future__ import annotations

from typing import Final

from modelyard.control.evidence_shelf import EvidenceShelf
from modelyard.control.published import EVERYTHING, OF_ROLLOUT
from modelyard.control.reading import Reading
from modelyard.control.rollout_states import Planned
from modelyard.control.state import State, StoredOverride
from modelyard.lifecycle.silence import ALIVE_S
from modelyard.rollout.capacity import Demand
from modelyard.rollout.look import Look
from modelyard.routing.fleet import version_of

# An ingress reports each second, with outcomes or without.
REPORTS_WITHIN_S: Final = 10.0


def look_at(
    rollout: str,
    planned: Planned | None,
    state: State,
    reading: Reading | None,
    shelf: EvidenceShelf,
    now: float,
) -> Look:
    """One moment. reading: None while the board is silent."""
    freeze = freeze_of(state, rollout, now)
    heard_s = shelf.heard_s(now)
    one = shelf.by_rollout.get(rollout)
    named = {}
    if planned is not None:
        named = {"alias": planned.alias, "stable": planned.stable, "canary": planned.canary}
    return Look(
        now=now,
        plan=None if planned is None else planned.plan,
        verdicts=() if one is None else one.evidence.verdicts(),
        figures=() if one is None else one.evidence.figures(),
        samples=0 if one is None else one.evidence.samples,
        demand=None if planned is None else demand_of(planned, reading),
        frozen="" if freeze is None else freeze.author,
        held=state.held,
        evidence_ok=heard_s is not None and heard_s <= REPORTS_WITHIN_S,
        **named,
    )


def freeze_of(state: State, rollout: str, now: float) -> StoredOverride | None:
    """The freeze that binds a rollout: its own, or that of everything."""
    targets = (EVERYTHING, OF_ROLLOUT + rollout)
    live = state.live_overrides(now)
    return next((one for one in live if one.kind == "freeze" and one.target in targets), None)


def demand_of(planned: Planned, reading: Reading | None) -> Demand | None:
    """None where nobody knows. An ingress counts what waits among what it holds."""
    if reading is None:
        return None
    ready = [
        post.report
        for post in reading.posts
        if version_of(post.report.app) == planned.canary
        and post.report.ready
        and post.age_s < ALIVE_S
    ]
    both = (planned.stable, planned.canary)
    requests = sum(
        count
        for entry in reading.ingresses
        if entry.age_s < ALIVE_S
        for version, count in entry.post.in_flight
        if version in both
    )
    return Demand(len(ready), sum(report.slots for report in ready), requests)
