import asyncio
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.result import Options, Result
from modelyard.bench.runner import Progress, Sender
from modelyard.bench.sweep import Sweep
from modelyard.testing.virtual_time import run_virtual
from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned
from modelyard.workload.slo import Slo

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


def swept(
    *rates: float,
    stop_at_s: float | None = None,
    workload: Workload = WORKLOAD,
    sender: Sender | None = None,
    **options: Any,
) -> Result:
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
        sweep = Sweep(workload, {}, Options(**every), sender or Slots(), watcher, now=clock_s)
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


def test_a_sweep_stopped_in_its_warm_up_has_no_window() -> None:
    result = swept(10, 15, stop_at_s=3)
    (level,) = result.levels
    assert level.stopped_in_warmup
    assert (result.knee_per_s, result.highest_held_per_s) == (None, None)
    assert not swept(10, 15, stop_at_s=30).levels[0].stopped_in_warmup


def test_a_result_says_what_it_was_made_of() -> None:
    result = swept(10)
    assert result.python == platform.python_version()
    assert result.workload == WORKLOAD
    assert result.options.rates_per_s == (10,)


NO_SLO = WORKLOAD.model_copy(update={"slo": Slo()})


class Slow:
    """As many at once as come, 8 s each: long, and no overload."""

    async def send(self, planned: Planned) -> Outcome:
        started = clock_s()
        await asyncio.sleep(8.0)
        return Outcome(Verdict.COMPLETED, started, clock_s(), output_tokens=4)


def test_throughput_is_never_more_than_the_server_can_do() -> None:
    (level,) = swept(80, workload=NO_SLO, duration_s=10.0, warmup_s=0.0).levels
    assert level.total.good_percent == 100
    assert 19 < level.goodput_per_s <= level.completed_per_s <= 20


def test_the_knee_is_found_without_an_slo() -> None:
    result = swept(5, 10, 15, 30, 40, workload=NO_SLO)
    assert [level.rate_per_s for level in result.levels] == [5, 10, 15, 30]
    assert result.levels[-1].total.good_percent == 100
    assert result.knee_per_s == 15


@pytest.mark.parametrize("rate_per_s", [0.5, 2, 10, 50])
@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_keeps_up_is_not_accused_of_its_long_answers(
    rate_per_s: float, seed: int
) -> None:
    workload = NO_SLO.model_copy(update={"seed": seed})
    assert swept(rate_per_s, workload=workload, sender=Slow()).highest_held_per_s == rate_per_s
    alone = swept(rate_per_s, workload=workload, sender=Slow(), warmup_s=0.0)
    assert alone.highest_held_per_s == rate_per_s


@pytest.mark.parametrize("seed", range(3))
def test_overload_shows_in_a_short_run_too(seed: int) -> None:
    workload = NO_SLO.model_copy(update={"seed": seed})
    result = swept(40, workload=workload, duration_s=5.0, warmup_s=0.8)
    assert result.knee_per_s is None


def test_a_client_has_one_budget_for_the_whole_run() -> None:
    class Gone:
        async def send(self, planned: Planned) -> Outcome:
            now = clock_s()
            return Outcome(Verdict.FAILED, now, now, code="disconnected", retryable=True)

    first, *others = swept(
        1, 2, 3, all_rates=True, warmup_s=0.0, sender=Gone(), retry="obey", workload=NO_SLO
    ).levels
    assert first.total.attempts - first.total.offered > 48  # the reserve of an outage, and a tenth
    for level in others:
        assert level.total.attempts_per_request == pytest.approx(1.1, abs=0.02)


def test_every_run_has_an_id_of_its_own() -> None:
    assert swept(10).runs != swept(10).runs
