import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from modelyard.bench.histogram import LatencyHistogram
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.recorder import Recorder
from modelyard.bench.retry import Retry, RetryKind
from modelyard.bench.runner import Runner
from modelyard.testing.virtual_time import run_virtual
from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned, plan


def workload(rate_per_s: float = 10, **fields: Any) -> Workload:
    return Workload.model_validate(
        {
            "schema": "modelyard/workload/v1",
            "arrivals": {"constant": {"rate_per_s": rate_per_s}},
            "streams": [{"name": "a", "route": "chat", "model": "m"}],
        }
        | fields
    )


def clock_s() -> float:
    return asyncio.get_running_loop().time()


class Scripted:
    """Answers with what `script` makes of the request and of how often it was sent before."""

    def __init__(self, script: Callable[[Planned, int], Outcome], takes_s: float = 0.0) -> None:
        self._script = script
        self._takes_s = takes_s
        self.sent: list[tuple[int, float]] = []

    async def send(self, planned: Planned) -> Outcome:
        before = sum(number == planned.number for number, _ in self.sent)
        self.sent.append((planned.number, clock_s()))
        started = clock_s()
        await asyncio.sleep(self._takes_s)
        outcome = self._script(planned, before)
        return Outcome(
            outcome.verdict,
            started,
            clock_s(),
            code=outcome.code,
            retryable=outcome.retryable,
            retry_after_s=outcome.retry_after_s,
        )


def slower(histogram: LatencyHistogram, seconds: float) -> int:
    """How many took longer, but for the width of a bucket."""
    within = [share for ms, share in histogram.cumulated() if ms <= seconds * 1001]
    return round(histogram.count * (1 - (within[-1] if within else 0.0)))


def completes(planned: Planned, before: int) -> Outcome:
    return Outcome(Verdict.COMPLETED, 0, 0)


def refuses_once(planned: Planned, before: int) -> Outcome:
    if before:
        return completes(planned, before)
    verdict = Verdict.REJECTED
    return Outcome(verdict, 0, 0, code="429", retryable=True, retry_after_s=3.0)


def refuses(planned: Planned, before: int) -> Outcome:
    return Outcome(Verdict.REJECTED, 0, 0, code="503", retryable=True, retry_after_s=3.0)


def run(
    sender: Scripted, load: Workload, seconds: float, retry: Retry | None = None, **options: Any
) -> Recorder:
    async def within() -> Recorder:
        recorder = Recorder(load, warmup_s=options.pop("warmup_s", 0), duration_s=seconds)
        runner = Runner(sender, recorder, now=clock_s, retry=retry)
        await runner.run(plan(load, {}, seconds), **options)
        return recorder

    return run_virtual(within())


def test_requests_leave_on_time_although_none_is_answered() -> None:
    sender = Scripted(completes, takes_s=1000)
    run(sender, workload(), 5)
    assert [number for number, _ in sender.sent] == list(range(50))
    assert [at_s for _, at_s in sender.sent] == pytest.approx([n / 10 for n in range(50)])


def test_the_run_ends_with_the_last_answer() -> None:
    recorder = run(Scripted(completes, takes_s=1000), workload(), 5)
    assert recorder.total.completed == 50
    assert recorder.total.e2e.percentiles_ms(50)[0] == pytest.approx(1_000_000, rel=0.001)


def test_a_blocked_generator_is_measured_and_its_delay_is_in_the_latency() -> None:
    class Blocking(Scripted):
        async def send(self, planned: Planned) -> Outcome:
            if planned.number == 10:  # as a long computation would: nothing else can run
                loop: Any = asyncio.get_running_loop()
                loop.jump(2.0)
            return await super().send(planned)

    recorder = run(Blocking(completes), workload(), 5)
    assert recorder.total.late.percentiles_ms(100)[0] == pytest.approx(1900, rel=0.01)
    assert recorder.total.late.percentiles_ms(50)[0] == pytest.approx(0.001)
    assert slower(recorder.total.e2e, 0.05) == 20  # number 10, and those due in its 2 s


def test_the_warm_up_is_in_no_figure_but_in_the_timeline() -> None:
    recorder = run(Scripted(completes), workload(), 5, warmup_s=2)
    assert recorder.total.offered == 30
    assert recorder.total.late.count == 30
    assert sum(piece.offered for piece in recorder.timeline.slices.values()) == 50


def test_a_refused_request_is_counted_and_has_no_latency() -> None:
    recorder = run(Scripted(refuses_once, takes_s=0.01), workload(), 5)
    total = recorder.total
    assert (total.offered, total.refused, total.completed, total.attempts) == (50, 50, 0, 50)
    assert total.rejections == {("429", ""): 50}
    assert total.e2e.count == 0
    assert total.rejected_after.percentiles_ms(50)[0] == pytest.approx(10, rel=0.001)
    assert recorder.total.good_percent == 0


def test_a_client_that_returns_at_once_does_so_and_one_that_obeys_waits() -> None:
    hasty, patient = Scripted(refuses_once), Scripted(refuses_once)
    run(hasty, workload(), 1, Retry(RetryKind.IMMEDIATE))
    recorder = run(patient, workload(), 1, Retry(RetryKind.OBEY))
    first = dict(reversed(hasty.sent))
    assert all(at_s == first[number] for number, at_s in hasty.sent)
    returned = dict(patient.sent)
    waits = [returned[number] - number / 10 for number in range(10)]
    assert all(3.0 <= wait < 3.2 for wait in waits)
    assert len({round(wait, 6) for wait in waits}) > 1  # not all at the same moment
    total = recorder.total
    assert (total.offered, total.completed, total.refused, total.attempts) == (10, 10, 0, 20)
    assert total.rejections == {("429", ""): 10}
    assert total.attempts_per_request == 2
    assert total.e2e.percentiles_ms(0)[0] is not None
    assert slower(total.e2e, 2.9) == 10  # its wait is part of what the caller saw


def test_stop_ends_a_run_at_once_and_keeps_what_was_measured() -> None:
    async def within() -> tuple[Recorder, float]:
        load = workload()
        recorder = Recorder(load, warmup_s=0, duration_s=1000)
        runner = Runner(Scripted(completes, takes_s=3.0), recorder, now=clock_s)
        asyncio.get_running_loop().call_later(10.05, runner.stop)
        await runner.run(plan(load, {}, 1000))
        return recorder, clock_s()

    recorder, ended_s = run_virtual(within())
    assert ended_s == pytest.approx(10.05)
    assert recorder.total.completed == 71  # due in the first 7.05 s
    assert recorder.total.unfinished == 30
    assert recorder.total.offered == 71


def test_a_bug_of_a_sender_ends_the_run_instead_of_vanishing() -> None:
    def broken(planned: Planned, before: int) -> Outcome:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup):
        run(Scripted(broken), workload(), 5)


def test_users_of_a_closed_loop_take_turns() -> None:
    sender = Scripted(completes, takes_s=1.0)
    recorder = run(sender, workload(rate_per_s=100), 1, closed_loop_users=4)
    assert recorder.total.completed == 100
    begun = sorted(at_s for _, at_s in sender.sent)
    assert begun[-1] == pytest.approx(24.03, abs=0.05)  # 100 requests of a second, four at a time
    assert recorder.total.e2e.percentiles_ms(100)[0] == pytest.approx(1000, rel=0.001)


def test_a_client_that_obeys_adds_a_tenth_to_an_overload_and_not_three_times_as_much() -> None:
    recorder = run(Scripted(refuses, takes_s=0.01), workload(), 60, Retry(RetryKind.OBEY))
    assert recorder.total.attempts_per_request == pytest.approx(1.1, abs=0.01)
    hasty = run(Scripted(refuses, takes_s=0.01), workload(), 60, Retry(RetryKind.IMMEDIATE))
    assert hasty.total.attempts_per_request == 4


def test_what_ends_after_the_window_is_no_throughput_of_it() -> None:
    recorder = run(Scripted(completes, takes_s=3.0), workload(), 10, warmup_s=2)
    total = recorder.total
    # Due from -1 to 7 s: those of the last 3 s end in the drain, those of the warm-up within.
    assert (total.offered, total.completed, total.completed_in_window) == (80, 80, 70)
    assert total.good_in_window == 70
    assert (total.under_way_halfway, total.under_way_at_end) == (30, 30)
