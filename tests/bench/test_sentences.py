import io
from typing import Any

import pytest
from rich.console import Console

from modelyard.bench import columns, sentences
from modelyard.bench.group_record import GroupRecord, TimelineRecord
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.page import as_html
from modelyard.bench.recorder import Recorder
from modelyard.bench.result import NO_WINDOW_S, Level, Options, Result, highest_held, knee_of
from modelyard.bench.terminal import print_result
from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned

WORKLOAD = Workload.model_validate(
    {
        "schema": "modelyard/workload/v1",
        "slo": {"e2e_s": 1},
        "arrivals": {"poisson": {"rate_per_s": 2}},
        "streams": [
            {"name": "a", "route": "chat", "model": "m<b>", "tenant": "t", "priority": "batch"},
            {"name": "b", "route": "chat", "model": "m", "tenant": "t"},
            {"name": "c", "route": "chat", "model": "m", "tenant": "u"},
        ],
    }
)


def level(
    rate_per_s: float,
    took_s: float,
    *,
    late_s: float = 0.001,
    refused: int = 0,
    lost: int = 0,
    unmeasured: int = 0,
) -> Level:
    recorder = Recorder(WORKLOAD, warmup_s=0, duration_s=10)
    for number in range(1000 + refused):
        planned = Planned(number, number / 100, WORKLOAD.streams[number % 3], 1, 1)
        verdict = Verdict.COMPLETED if number < 1000 else Verdict.REJECTED
        outcome = Outcome(verdict, 0.0, took_s, code="503", reason="queue_full")
        recorder.sent(planned, late_s)
        recorder.attempt(planned)
        recorder.answer(planned, outcome)
        recorder.end(planned, 0.0, outcome)
    recorder.total.failed += lost
    recorder.total.unmeasured += unmeasured
    return Level(
        rate_per_s=rate_per_s,
        started_unix_s=0,
        window_s=10,
        drained_s=10,
        interrupted=False,
        cpu_cores=0.5,
        total=GroupRecord.of(recorder.total),
        streams={name: GroupRecord.of(one) for name, one in recorder.streams.items()},
        timeline=TimelineRecord.of(recorder.timeline),
    )


def result(*levels: Level, **options: Any) -> Result:
    asked: dict[str, Any] = {
        "url": "http://x/<i>",
        "tenants_with_keys": ("t", "u"),
        "rates_per_s": tuple(one.rate_per_s for one in levels),
        "duration_s": 10,
        "warmup_s": 0,
        "goodput_percent": 95,
        "timeout_s": 60,
    }
    return Result(
        schema_="modelyard/bench/v1",
        modelyard="0",
        python="3",
        machine="m",
        options=Options(**asked | options),
        workload=WORKLOAD,
        traces={},
        runs=("one",),
        levels=levels,
        knee_per_s=knee_of(levels, 95),
        highest_held_per_s=highest_held(levels, 95),
    )


GOOD, BAD = level(10, 0.5), level(20, 2.0)


def test_the_knee_is_said_and_also_that_it_was_not_seen() -> None:
    assert sentences.verdict(result(GOOD, BAD)).startswith("The knee is at 10/s")
    assert "no knee seen" in sentences.verdict(result(GOOD, level(20, 0.5)))
    assert "not even at 20/s" in sentences.verdict(result(BAD, BAD))
    assert sentences.verdict(result(BAD)) == (
        "0.0 % of 100.00/s offered was good. "
        "Within the window 100.00/s completed, 0.00/s of them good."
    )


def test_the_rates_that_a_sweep_left_out_are_said() -> None:
    text = sentences.verdict(result(BAD, rates_per_s=(20, 30, 40)))
    assert "The knee is below 20/s" in text
    assert text.endswith("2 higher rates were left out: --all-rates measures them too.")
    assert "left out" not in sentences.verdict(result(GOOD, BAD))
    stopped = sentences.verdict(
        result(GOOD.model_copy(update={"interrupted": True}), rates_per_s=(1, 2))
    )
    assert stopped.endswith("1 higher rate was left out: the run was stopped.")


def test_a_rate_that_all_held_is_no_knee_and_is_labelled_so() -> None:
    held = result(GOOD, level(20, 0.5))
    assert (held.knee_per_s, held.highest_held_per_s) == (None, 20)
    assert "held up to 20/s, no knee seen" in as_html(held)
    assert "knee 10/s" in as_html(result(GOOD, BAD))


def test_a_run_stopped_in_its_warm_up_shows_no_figures() -> None:
    recorder = Recorder(WORKLOAD, warmup_s=5, duration_s=10)
    stopped = GOOD.model_copy(
        update={
            "interrupted": True,
            "window_s": NO_WINDOW_S,
            "total": GroupRecord.of(recorder.total),
            "streams": {name: GroupRecord.of(one) for name, one in recorder.streams.items()},
        }
    )
    alone = result(stopped)
    assert sentences.verdict(alone) == "Stopped during the warm-up: nothing was measured."
    assert len(sentences.warnings(alone)) == 1
    assert set(columns.by_rate(alone)[0][1:]) == {"-"}
    assert "Stopped during the warm-up" in as_html(alone)
    later = result(GOOD, stopped)
    assert (later.knee_per_s, later.highest_held_per_s) == (None, 10)
    assert "At 10/s, the highest rate measured" in sentences.verdict(later)


def test_a_rate_that_holds_beyond_one_that_does_not_is_no_knee() -> None:
    assert result(GOOD, BAD, level(30, 0.5)).knee_per_s == 10


def test_nothing_is_warned_of_without_need() -> None:
    assert sentences.warnings(result(GOOD)) == []


def test_a_generator_that_was_late_is_said_loudly_and_first() -> None:
    late = result(level(10, 0.1, late_s=0.5), connections=4, closed_loop_users=8)
    first, *others = sentences.warnings(late)
    assert "COULD NOT KEEP ITS SCHEDULE" in first
    assert "500 ms late" in first
    assert "closed loop of 8 users" in others[0]
    assert "At most 4 connections" in others[1]


def test_a_generator_that_was_late_and_idle_blames_the_machine() -> None:
    late = level(10, 0.1, late_s=0.5)
    (text,) = sentences.warnings(result(late.model_copy(update={"cpu_cores": 0.02})))
    assert "the machine is busy with other work" in text
    assert "merge" not in text
    assert "use several and merge" in sentences.warnings(result(late))[0]


def test_a_lateness_that_does_not_matter_to_such_latencies_is_not_warned_of() -> None:
    assert level(10, 5.0, late_s=0.2).schedule_kept
    assert not level(10, 0.005, late_s=0.02).schedule_kept


def test_causes_are_counted() -> None:
    assert sentences.causes(level(10, 0.1, refused=5)) == ["rejected 503 queue_full: 5"]


def test_a_cause_has_what_the_server_said_of_it() -> None:
    recorder = Recorder(WORKLOAD, warmup_s=0, duration_s=10)
    planned = Planned(0, 0.0, WORKLOAD.streams[0], 1, 1)
    for said in ("no <b>such</b> key", "another"):
        recorder.answer(planned, Outcome(Verdict.FAILED, 0, 1, code="401", message=said))
    total = GroupRecord.of(recorder.total)
    assert GroupRecord.of(total.figures()) == total
    shown = result(GOOD.model_copy(update={"total": total}))
    assert sentences.causes(shown.levels[0]) == [
        'error 401: 2, the server said "no <b>such</b> key"; give one of its keys with --api-key'
    ]
    assert "no &lt;b&gt;such&lt;/b&gt; key" in as_html(shown)


def test_figures_of_a_tenant_are_those_of_its_streams() -> None:
    rows = columns.by_label(result(GOOD), "tenant")
    assert [(row[1], row[2]) for row in rows] == [("t", "66.70"), ("u", "33.30")]
    assert [row[1] for row in columns.by_label(result(GOOD), "priority")] == ["batch", "-"]
    assert len(columns.by_stream(result(GOOD))) == 3


@pytest.mark.parametrize("levels", [(GOOD,), (GOOD, BAD), (BAD,)])
def test_the_page_shows_everything_and_lets_no_text_in_as_markup(levels: tuple[Level, ...]) -> None:
    page = as_html(result(*levels))
    assert "<i>" not in page
    assert "m&lt;b&gt;" in page
    assert page.count("<svg") == (5 if len(levels) == 2 else 4)
    assert page == as_html(result(*levels))  # the same result, the same bytes


@pytest.mark.parametrize(("lost", "said"), [(9, None), (50, "p99"), (300, "p90"), (1001, "p50")])
def test_failures_that_percentiles_leave_out_are_said(lost: int, said: str | None) -> None:
    texts = sentences.warnings(result(level(10, 0.5, lost=lost)))
    if said is None:
        assert texts == []
    else:
        assert f"{lost} requests failed" in texts[0]
        assert f": {said} and above are of the others only" in texts[0]


def test_a_server_that_does_not_keep_up_is_said() -> None:
    (text,) = sentences.warnings(result(level(100, 12.0)))
    assert "500 requests were under way halfway through the window, 1000 at its end" in text


def test_streams_that_showed_nothing_are_said() -> None:
    (text,) = sentences.warnings(result(level(10, 0.5, unmeasured=3)))
    assert "3 streams had no first piece, or many tokens in one piece" in text


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/[/b]", "http://[fe80::1]:18201"])
def test_an_address_is_printed_as_it_is(url: str) -> None:
    out = io.StringIO()
    print_result(result(GOOD, url=url), Console(file=out))
    assert f"{url}, times in ms" in out.getvalue()
