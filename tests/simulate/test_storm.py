"""What callers that are refused do to a server, and to themselves."""

from __future__ import annotations

from functools import partial

import pytest

from modelyard.simulate.parallel import run_all
from modelyard.simulate.storm_rows import (
    NO_RETRY,
    OBEYING,
    STORMS,
    THREE_AT_ONCE,
    THREE_LAYERS,
    Storm,
    StormFigures,
    obeying,
)


@pytest.fixture(scope="module")
def figures() -> dict[str, StormFigures]:
    figures = run_all([partial(storm.run, 1) for storm in STORMS], lambda: None)
    return {storm.name: one for storm, one in zip(STORMS, figures, strict=True)}


def test_clients_that_obey_add_a_tenth_at_most(figures: dict[str, StormFigures]) -> None:
    obeyed = [one for name, one in figures.items() if name.endswith(OBEYING[0])]
    assert len(obeyed) == 4
    assert all(1.0 < one.attempts_per_call <= 1.10 for one in obeyed)


@pytest.mark.parametrize("load", ["120 %, 2 ms", "130 %, 2 ms"])
def test_retries_at_once_multiply_attempts_and_refusals_and_gain_nothing(
    load: str, figures: dict[str, StormFigures]
) -> None:
    none, at_once, layers = (
        figures[f"{load}: {name}"] for name, _ in (NO_RETRY, THREE_AT_ONCE, THREE_LAYERS)
    )
    assert at_once.attempts_per_call > 1.5
    assert at_once.refused_per_s > 4 * none.refused_per_s
    assert layers.attempts_per_call > 5 * at_once.attempts_per_call
    assert at_once.useful_per_s < 1.02 * none.useful_per_s


@pytest.mark.parametrize("load", ["120 %, 20 ms", "130 %, 20 ms"])
def test_where_a_refusal_costs_something_retries_at_once_take_the_goodput(
    load: str, figures: dict[str, StormFigures]
) -> None:
    none, layers, obeyed = (
        figures[f"{load}: {name}"] for name, _ in (NO_RETRY, THREE_LAYERS, OBEYING)
    )
    assert layers.useful_per_s < 0.7 * none.useful_per_s
    assert obeyed.useful_per_s > 0.95 * none.useful_per_s


def test_a_job_that_is_refused_goes_slower(figures: dict[str, StormFigures]) -> None:
    resting, hurrying = figures["10 jobs that rest"], figures["10 jobs, next row at once"]
    assert resting.attempts_per_s < 0.6 * hurrying.attempts_per_s
    assert resting.useful_per_s > 19
    assert hurrying.useful_per_s < 15


def test_a_client_without_overload_never_retries() -> None:
    calm = Storm("50 %", partial(obeying, processes=40), rate=10.0, cost_s=0.002)
    assert calm.run(1).attempts_per_call == pytest.approx(1.0, abs=0.001)
