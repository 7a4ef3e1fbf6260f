"""What control sees of a rollout at one moment: the table, the board, its evidence. Pure."""

from __future__ import annotations

from typing import Final

from modelyard.control.demand import Demands
from modelyard.control.evidence_shelf import EvidenceShelf
from modelyard.control.published import EVERYTHING, OF_ROLLOUT
from modelyard.control.rollout_states import Planned
from modelyard.control.state import State, StoredOverride
from modelyard.rollout.look import Look

# An ingress reports each second, with outcomes or without.
REPORTS_WITHIN_S: Final = 10.0


def look_at(
    rollout: str,
    planned: Planned | None,
    state: State,
    demands: Demands,
    shelf: EvidenceShelf,
    now: float,
) -> Look:
    """One moment. now: unix seconds."""
    freeze = freeze_of(state, rollout, now)
    heard_s = shelf.heard_s()
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
        demand=None if planned is None else demands.of_canary(planned),
        stable_demand=None if planned is None else demands.of_stable(planned),
        elapsed_s=shelf.elapsed_s(rollout),
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
