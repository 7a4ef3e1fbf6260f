"""The example of the seed, "Benchmarking serving systems": a stall of one second in ten."""

import asyncio

import pytest

from modelyard.bench.figures import Figures
from modelyard.bench.histogram import LatencyHistogram
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.recorder import Recorder
from modelyard.bench.runner import Runner
from modelyard.testing.virtual_time import run_virtual
from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned, plan

SECONDS = 10.0
STALL_AT = 400
WORKLOAD = Workload.model_validate(
    {
        "schema": "modelyard/workload/v1",
        "arrivals": {"constant": {"rate_per_s": 100}},
        "streams": [{"name": "a", "route": "classify", "model": "m"}],
    }
)


class Fifo:
    """One request at a time, 5 ms each; one of them takes a second."""

    def __init__(self) -> None:
        self._free_at = 0.0

    async def send(self, planned: Planned) -> Outcome:
        now = asyncio.get_running_loop().time
        started = now()
        served_s = 1.0 if planned.number == STALL_AT else 0.005
        self._free_at = max(self._free_at, started) + served_s
        await asyncio.sleep(self._free_at - started)
        return Outcome(Verdict.COMPLETED, started, now())


def slower(histogram: LatencyHistogram, seconds: float) -> int:
    """How many took longer, but for the width of a bucket."""
    within = [share for ms, share in histogram.cumulated() if ms <= seconds * 1001]
    return round(histogram.count * (1 - (within[-1] if within else 0.0)))


def measured(closed_loop_users: int | None) -> Figures:
    async def run() -> Figures:
        recorder = Recorder(WORKLOAD, warmup_s=0, duration_s=SECONDS)
        runner = Runner(Fifo(), recorder, now=asyncio.get_running_loop().time)
        await runner.run(plan(WORKLOAD, {}, SECONDS), closed_loop_users=closed_loop_users)
        return recorder.total

    return run_virtual(run())


def test_the_open_loop_shows_the_stall_to_all_who_would_have_waited() -> None:
    figures = measured(None)
    assert figures.completed == 1000
    assert figures.e2e.percentiles_ms(50)[0] == pytest.approx(5, rel=0.001)
    assert figures.e2e.percentiles_ms(99)[0] == pytest.approx(950, rel=0.001)
    assert figures.e2e.percentiles_ms(100)[0] == pytest.approx(1000, rel=0.001)
    assert slower(figures.e2e, 0.1) == 180


def test_a_closed_loop_of_one_user_hides_it() -> None:
    figures = measured(1)
    assert figures.completed == 1000
    assert figures.e2e.percentiles_ms(50)[0] == pytest.approx(5, rel=0.001)
    assert figures.e2e.percentiles_ms(99)[0] == pytest.approx(5, rel=0.001)
    assert figures.e2e.percentiles_ms(100)[0] == pytest.approx(1000, rel=0.001)
    assert slower(figures.e2e, 0.1) == 1
