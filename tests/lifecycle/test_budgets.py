import pytest

from modelyard.config.model_args import StartBudgets
from modelyard.lifecycle.budgets import over_budget
from modelyard.lifecycle.phases import START, Phase

BUDGETS = StartBudgets(loading_s=30)


def test_a_phase_within_its_budget_goes_on() -> None:
    assert over_budget(Phase.LOADING, 30.0, BUDGETS) is None


def test_a_phase_over_its_budget_is_named_with_what_raises_it() -> None:
    why = over_budget(Phase.LOADING, 30.1, BUDGETS)
    assert why is not None
    assert "the phase Loading took longer than its budget of 30 s" in why
    assert "args.start_budgets.loading_s" in why


@pytest.mark.parametrize("phase", START)
def test_every_phase_of_a_start_has_a_budget(phase: Phase) -> None:
    assert over_budget(phase, 1e9, BUDGETS) is not None


@pytest.mark.parametrize("phase", [Phase.READY, Phase.DRAINING, Phase.FAILED])
def test_what_is_past_its_start_has_none(phase: Phase) -> None:
    assert over_budget(phase, 1e9, BUDGETS) is None
