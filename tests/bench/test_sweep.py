import asyncio
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.result import Options, Result
from modelyard.bench.runner import Progress
from modelyard.bench.sweep import Sweep
from modelyard.testing.virtual_time import run_virtual
from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned

WORKLOAD = Workload.model_validate(
    {
        "schema": "modelyard/workload/v1",
        "slo": {"e2e_s": 1},
        "arrivals": {"poisson": {"rate_per_s": 1}},
        "streams": [{"name": "a", "route": "chat", "model": "m"}],
    }
)


def clock_s() -> float:
    return asyncio.get_running_loop().time()


class Slots:
    """Two slots of 0.1 s: 20 requests a second, in order."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(2)

    async def send(self, planned: Planned) -> Outcome:
        started = clock_s()
        async with self._slots:
            await asyncio.sleep(0.1)
        return Outcome(Verdict.COMPLETED, started, clock_s())


class Silent:
    def __init__(self) -> None:
        self.updates = 0

    @contextmanager
    def level(self, rate_per_s: float, duration_s: float) -> Iterator[None]:
        yield

    def update(self, progress: Progress) -> None:
        self.updates += 1


def swept(*rates: float, stop_at_s: float | None = None, **options: Any) -> Result:
    async def within() -> Result:
        every = {
            "url": "http://x",
            "tenants_with_keys": (),
            "rates_per_s": rates,
            "duration_s": 60.0,
            "warmup_s": 5.0,
            "goodput_percent": 95.0,
            "timeout_s": 60.0,
        } | options
        watcher = Silent()
        sweep = Sweep(WORKLOAD, {}, Options(**every), Slots(), watcher, now=clock_s)
        if stop_at_s is not None:
            asyncio.get_running_loop().call_later(stop_at_s, sweep.stop)
        result = await sweep.run()
        assert watcher.updates
        return result

    return run_virtual(within())


def test_the_sweep_stops_at_the_first_rate_that_does_not_hold() -> None:
    result = swept(5, 10, 15, 30, 40)
    assert [level.rate_per_s for level in result.levels] == [5, 10, 15, 30]
    assert result.knee_per_s == 15
    assert result.levels[2].goodput_per_s == pytest.approx(15, rel=0.15)
    assert result.levels[3].total.good_percent is not None
    assert result.levels[3].total.good_percent < 50


def test_every_rate_is_measured_where_that_is_asked() -> None:
    result = swept(10, 30, 40, all_rates=True)
    assert [level.rate_per_s for level in result.levels] == [10, 30, 40]
    assert result.knee_per_s == 10


def test_there_may_be_no_knee() -> None:
    assert swept(40).knee_per_s is None


def test_the_window_is_what_the_warm_up_leaves() -> None:
    (level,) = swept(10).levels
    assert level.window_s == 55
    assert level.offered_per_s == pytest.approx(10, rel=0.15)
    assert level.drained_s >= 59
    assert level.schedule_kept


def test_an_interrupted_sweep_has_the_figures_so_far() -> None:
    result = swept(10, 15, stop_at_s=30)
    (level,) = result.levels
    assert level.interrupted
    assert level.window_s == pytest.approx(25, abs=0.1)
    assert level.offered_per_s == pytest.approx(10, rel=0.2)


def test_a_result_says_what_it_was_made_of() -> None:
    result = swept(10)
    assert result.python == platform.python_version()
    assert result.workload == WORKLOAD
    assert result.options.rates_per_s == (10,)
