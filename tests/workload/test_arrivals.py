import itertools
import random
import statistics

import pytest
from pydantic import ValidationError

from modelyard.workload.arrivals import Arrivals, Bursts, Constant, Poisson, Process, Replay, Steps
from modelyard.workload.trace import Recorded, Trace

TRACE = Trace(tuple(Recorded(float(at), 10 * at, at) for at in (0, 1, 4, 5, 10)))


def within(process: Process, seconds: float, seed: int = 1) -> list[float]:
    times = process.times(random.Random(seed), {"t.csv": TRACE})
    return list(itertools.takewhile(lambda time: time < seconds, times))


def counts_per_s(times: list[float], seconds: int) -> list[int]:
    counts = [0] * seconds
    for time in times:
        counts[int(time)] += 1
    return counts


def test_constant_arrivals_are_evenly_spaced_from_zero() -> None:
    assert within(Constant(rate_per_s=100), 0.05) == [0.0, 0.01, 0.02, 0.03, 0.04]


def test_poisson_arrivals_have_their_rate_and_repeat_with_the_seed() -> None:
    times = within(Poisson(rate_per_s=5), 2000)
    assert len(times) == pytest.approx(10_000, rel=0.03)
    assert times == within(Poisson(rate_per_s=5), 2000)
    assert times != within(Poisson(rate_per_s=5), 2000, seed=2)


def test_bursts_keep_the_mean_and_vary_as_a_negative_binomial() -> None:
    bursts = Bursts(rate_per_s=20, cv=0.5, period_s=1)
    counts = counts_per_s(within(bursts, 4000), 4000)
    assert statistics.mean(counts) == pytest.approx(20, rel=0.05)
    assert statistics.variance(counts) == pytest.approx(20 + (0.5 * 20) ** 2, rel=0.15)


def test_steps_go_from_rate_to_rate_and_end() -> None:
    steps = Steps.model_validate(
        {"steps": [{"rate_per_s": 26, "for_s": 120}, {"rate_per_s": 14, "for_s": 180}]}
    )
    times = within(steps, 1e9)
    assert sum(time < 120 for time in times) == pytest.approx(26 * 120, rel=0.05)
    assert sum(time >= 120 for time in times) == pytest.approx(14 * 180, rel=0.05)
    assert max(times) < 300
    assert steps.length_s({}) == 300
    assert steps.mean_per_s({}) == pytest.approx((26 * 120 + 14 * 180) / 300)


def test_replay_gives_the_recorded_times_from_where_and_as_fast_as_asked() -> None:
    assert within(Replay(file="t.csv"), 100) == [0, 1, 4, 5, 10]
    assert within(Replay(file="t.csv", from_s=4, speed=2), 100) == [0, 0.5, 3]


def test_the_last_recorded_request_is_within_the_length() -> None:
    process = Replay(file="t.csv")
    length_s = process.length_s({"t.csv": TRACE})
    assert length_s is not None
    assert len(within(process, length_s)) == 5


@pytest.mark.parametrize(
    "record",
    [
        {"constant": {"rate_per_s": 3}},
        {"poisson": {"rate_per_s": 3}},
        {"bursts": {"rate_per_s": 3, "cv": 2}},
        {"steps": {"steps": [{"rate_per_s": 2, "to_per_s": 4, "for_s": 9}]}},
        {"replay": {"file": "t.csv"}},
    ],
)
def test_every_process_takes_another_rate_in_the_same_shape(record: dict[str, object]) -> None:
    traces = {"t.csv": TRACE}
    arrivals = Arrivals.model_validate(record)
    faster = arrivals.at(12.0, traces)
    assert faster.kind == arrivals.kind
    assert faster.process.mean_per_s(traces) == pytest.approx(12.0)
    same = arrivals.at(arrivals.process.mean_per_s(traces), traces)
    assert within(same.process, 30) == within(arrivals.process, 30)


def test_arrivals_are_of_exactly_one_kind() -> None:
    with pytest.raises(ValidationError, match="holds 0 kinds, must hold one"):
        Arrivals.model_validate({})
    with pytest.raises(ValidationError, match="holds 2 kinds"):
        Arrivals.model_validate({"poisson": {"rate_per_s": 1}, "constant": {"rate_per_s": 1}})


def test_steps_in_which_nothing_comes_are_refused() -> None:
    with pytest.raises(ValidationError, match="nothing would come"):
        Steps.model_validate({"steps": [{"rate_per_s": 0, "for_s": 5}]})
