from typing import Any

import pytest

from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.recorder import Recorder
from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned

WORKLOAD = Workload.model_validate(
    {
        "schema": "modelyard/workload/v1",
        "arrivals": {"constant": {"rate_per_s": 1}},
        "slo": {"ttft_s": 1, "itl_s": 0.1},
        "streams": [
            {"name": "chat", "route": "chat", "model": "m"},
            {"name": "search", "route": "embeddings", "model": "m", "slo": {"e2e_s": 0.5}},
        ],
    }
)


def recorded(stream: int, **fields: Any) -> Recorder:
    recorder = Recorder(WORKLOAD, warmup_s=0, duration_s=10)
    planned = Planned(0, 2.0, WORKLOAD.streams[stream], 1, 1)
    base: dict[str, Any] = {"verdict": Verdict.COMPLETED, "started": 102.0, "ended": 103.0}
    recorder.end(planned, 102.0, Outcome(**base | fields))
    return recorder


def test_times_count_from_when_the_request_was_due() -> None:
    recorder = recorded(0, started=104.0, first=104.5, gaps_s=(0.01, 0.02), ended=105.0)
    assert recorder.total.e2e.percentiles_ms(100)[0] == pytest.approx(3000, rel=0.001)
    assert recorder.total.ttft.percentiles_ms(100)[0] == pytest.approx(2500, rel=0.001)
    assert recorder.total.itl.count == 2
    assert recorder.total.good == 0


def test_the_pace_is_the_mean_gap_over_all_tokens() -> None:
    assert recorded(0, first=102.5, gaps_s=(0.15, 0.02), output_tokens=3).total.good == 1
    assert recorded(0, first=102.5, gaps_s=(0.15, 0.12), output_tokens=3).total.good == 0
    # Two gaps, but nine tokens: a server that sends several in a piece is no slower for it.
    assert recorded(0, first=102.5, gaps_s=(0.15, 0.12), output_tokens=9).total.good == 1


def test_a_stream_has_its_own_slo_where_it_says_so() -> None:
    assert recorded(1, ended=102.4).total.good == 1
    assert recorded(1, ended=102.6).total.good == 0


def test_figures_are_kept_for_each_stream() -> None:
    recorder = recorded(1, output_tokens=7)
    assert recorder.streams["search"].completed == recorder.total.completed == 1
    assert recorder.streams["chat"].completed == 0
    assert recorder.timeline.slices[2].offered == 1


def test_failures_count_as_offered_and_not_as_good() -> None:
    recorder = recorded(0, verdict=Verdict.FAILED, code="500")
    total = recorder.total
    assert (total.offered, total.failed, total.good, total.e2e.count) == (1, 1, 0, 0)
    assert recorder.timeline.slices[2].failed == 1


def test_a_bound_on_what_was_not_seen_is_not_met_and_is_counted() -> None:
    for fields in (
        {},  # no first piece
        {"first": 102.2, "output_tokens": 64},  # all in one piece
        {"first": 102.2, "output_tokens": 1, "tokens_counted": False},  # perhaps so
    ):
        total = recorded(0, **fields).total
        assert (total.completed, total.good, total.unmeasured) == (1, 0, 1), fields


def test_one_token_has_no_pace_to_fail() -> None:
    total = recorded(0, first=102.2, output_tokens=1).total
    assert (total.good, total.unmeasured) == (1, 0)


def test_a_request_of_the_warm_up_that_ends_in_the_window_is_work_done_in_it() -> None:
    recorder = Recorder(WORKLOAD, warmup_s=5, duration_s=10)
    recorder.begin(100.0)
    for number, (due_s, ended_s) in enumerate([(1, 2), (1, 6), (6, 7), (9, 12)]):
        planned = Planned(number, due_s, WORKLOAD.streams[1], 1, 1)
        due, ended = 100.0 + due_s, 100.0 + ended_s
        recorder.end(planned, due, Outcome(Verdict.COMPLETED, due, ended, output_tokens=7))
    total = recorder.total
    assert (total.offered, total.completed) == (2, 2)
    assert (total.completed_in_window, total.output_tokens_in_window) == (2, 14)
    assert total.under_way_at_end == 1
