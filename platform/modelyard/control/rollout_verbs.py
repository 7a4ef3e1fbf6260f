"""The verbs on a rollout, on control's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from modelyard.contract.validate import validated
from modelyard.control.arguments import OnRollout
from modelyard.control.rollout_states import keep
from modelyard.control.state import State
from modelyard.rollout.commands import RolloutVerb, ordered
from modelyard.rollout.look import Look
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.record import RolloutRecord

Outcome: TypeAlias = dict[str, str | float | bool | None]
# What is known of a rollout now. Raises NotFound.
LookOf: TypeAlias = Callable[[State, str], tuple[RolloutRecord, Look]]

ROLLBACK: Final = "rollback_rollout"
# As they arrive: `start` alone would not say what of.
ROLLOUT_VERBS: Final[dict[str, RolloutVerb]] = {
    "start_rollout": "start",
    "pause_rollout": "pause",
    "resume_rollout": "resume",
    "approve_rollout": "approve",
    "promote_rollout": "promote",
    ROLLBACK: "rollback",
}


def on_rollout(
    state: State, verb: str, args: Mapping[str, Any], author: str, look_of: LookOf
) -> tuple[State, Outcome]:
    """The next state and the answer; the same state where it is so already. Raises RequestError."""
    asked = validated(OnRollout, args)
    record, look = look_of(state, asked.rollout)
    moved = ordered(record, ROLLOUT_VERBS[verb], look, author, asked.reason)
    changed = keep(state, moved)
    return changed, outcome_of(changed, moved)


def outcome_of(state: State, record: RolloutRecord) -> Outcome:
    return {
        "id": record.id,
        "phase": record.phase.value,
        "percent": record.percent,
        "revision": state.revision,
    }


def overtaken(outcome: Outcome, state: State) -> Outcome:
    """The answer to a verb. A rollback that came into force while the verb was being stored, or
    since it was first carried out, has beaten it, and the answer says so."""
    rollout = str(outcome.get("id") or outcome.get("rollout"))
    record = state.rollouts.get(rollout)
    if record is None or record.phase is not RolloutPhase.ROLLED_BACK:
        return outcome
    if "phase" in outcome:
        return outcome_of(state, record)
    if "finished" in outcome:
        return outcome | {"percent": 0.0, "finished": True, "revision": state.revision}
    return outcome
