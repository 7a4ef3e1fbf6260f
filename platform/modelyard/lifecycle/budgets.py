"""When a phase of a start has taken too long."""

from __future__ import annotations

from typing import Final

from modelyard.config.model_args import StartBudgets
from modelyard.lifecycle.phases import Phase

_FIELD_OF: Final = {
    Phase.SCHEDULED: "scheduled_s",
    Phase.FETCHING: "fetching_s",
    Phase.VERIFYING: "verifying_s",
    Phase.LOADING: "loading_s",
    Phase.WARMING: "warming_s",
    Phase.SELF_TEST: "self_test_s",
}
# What most often holds a phase up, so that the text says where to look.
_LOOK_AT: Final = {
    Phase.SCHEDULED: "look whether the cluster has the resources it asks for",
    Phase.FETCHING: "look at the store and the network",
    Phase.VERIFYING: "look at the disk",
    Phase.LOADING: "look at the memory and the disk",
    Phase.WARMING: "look whether the device is shared or slow",
    Phase.SELF_TEST: "look whether the device is shared or slow",
}


def over_budget(phase: Phase, phase_s: float, budgets: StartBudgets) -> str | None:
    """Why a replica in this phase must give up, or None. phase_s: seconds in the phase."""
    field = _FIELD_OF.get(phase)
    if field is None:
        return None
    budget_s: float = getattr(budgets, field)
    if phase_s <= budget_s:
        return None
    return (
        f"the phase {phase} took longer than its budget of {budget_s:g} s: {_LOOK_AT[phase]}, "
        f"or raise args.start_budgets.{field}"
    )
