from pathlib import Path
from typing import Any

import pytest

from modelyard.bench.figures import Figures
from modelyard.bench.group_record import GroupRecord, TimelineRecord
from modelyard.bench.merge import merge
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.recorder import Recorder
from modelyard.bench.result import Level, Options, Result, read_result
from modelyard.contract.errors import ConfigError
from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned

WORKLOAD = Workload.model_validate(
    {
        "schema": "modelyard/workload/v1",
        "slo": {"e2e_s": 0.3},
        "arrivals": {"poisson": {"rate_per_s": 2}},
        "streams": [
            {"name": "a", "route": "chat", "model": "m", "tenant": "t", "priority": "batch"},
            {"name": "b", "route": "chat", "model": "m", "tenant": "t"},
            {"name": "c", "route": "chat", "model": "m", "tenant": "u"},
        ],
    }
)


def level(took_s: list[float], rate_per_s: float = 10, **fields: Any) -> Level:
    """One request for each time, due one after the other, of each stream in turn."""
    recorder = Recorder(WORKLOAD, warmup_s=0, duration_s=10)
    for number, seconds in enumerate(took_s):
        planned = Planned(number, float(number), WORKLOAD.streams[number % 3], 1, 1)
        recorder.attempt(planned)
        recorder.sent(planned, 0.0001)
        recorder.end(planned, 0.0, Outcome(Verdict.COMPLETED, 0.0, seconds))
    record: dict[str, Any] = {
        "rate_per_s": rate_per_s,
        "started_unix_s": 1000.0,
        "window_s": 10.0,
        "drained_s": 10.0,
        "interrupted": False,
        "cpu_cores": 0.25,
        "total": GroupRecord.of(recorder.total),
        "streams": {name: GroupRecord.of(one) for name, one in recorder.streams.items()},
        "timeline": TimelineRecord.of(recorder.timeline),
    }
    return Level.model_validate(record | fields)


def result(*levels: Level, workload: Workload = WORKLOAD) -> Result:
    return Result(
        schema_="modelyard/bench/v1",
        modelyard="0",
        python="3",
        machine="m",
        options=Options(
            url="http://x",
            tenants_with_keys=("t",),
            rates_per_s=tuple(one.rate_per_s for one in levels),
            duration_s=10,
            warmup_s=0,
            goodput_percent=95,
            timeout_s=60,
        ),
        workload=workload,
        traces={},
        levels=levels,
        knee_per_s=None,
    )


ONE, OTHER = [0.1, 0.2, 0.5, 0.1], [0.2, 0.9]


def test_a_file_read_back_is_the_same_result(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(result(level(ONE), level(OTHER, 20)).as_json())
    assert read_result(path) == result(level(ONE), level(OTHER, 20))


def test_histograms_are_those_of_all_requests_together() -> None:
    (merged,) = merge([result(level(ONE)), result(level(OTHER))]).levels
    recorded = Figures()
    for seconds in ONE + OTHER:
        recorded.e2e.record(seconds)
    assert merged.total.e2e.histogram == recorded.e2e.encode()
    assert merged.total.completed == 6
    assert merged.total.good == 4
    assert sum(one.completed for one in merged.streams.values()) == 6
    assert sum(one.offered for one in merged.timeline.slices) == 6


def test_generators_at_the_same_time_add_their_rates() -> None:
    whole = merge([result(level(ONE)), result(level(OTHER, rate_per_s=5, started_unix_s=1001.0))])
    (merged,) = whole.levels
    assert merged.rate_per_s == 15
    assert merged.window_s == 10
    assert merged.cpu_cores == 0.5
    assert whole.merged == 2
    assert "rates add up" in whole.notes[0]


def test_repeats_add_their_seconds() -> None:
    whole = merge([result(level(ONE)), result(level(OTHER, started_unix_s=5000.0))])
    (merged,) = whole.levels
    assert (merged.rate_per_s, merged.window_s) == (10, 20)
    assert merged.offered_per_s == pytest.approx(0.3)
    assert "seconds add up" in whole.notes[0]


def test_the_knee_is_found_again() -> None:
    good, bad = level([0.1] * 40, 10), level([0.9] * 40, 20)
    whole = merge([result(good, bad), result(good, bad)])
    assert whole.knee_per_s == 20  # both at once: the rates are twice as high
    assert merge([result(bad), result(good)]).knee_per_s is None


def test_runs_that_are_not_of_one_kind_are_refused() -> None:
    other = WORKLOAD.model_validate(WORKLOAD.model_dump(by_alias=True) | {"slo": {"e2e_s": 9}})
    with pytest.raises(ConfigError, match="different SLOs"):
        merge([result(level(ONE)), result(level(ONE), workload=other)])
    with pytest.raises(ConfigError, match="one run has 1 rates, another 2"):
        merge([result(level(ONE)), result(level(ONE), level(ONE))])
    with pytest.raises(ConfigError, match="repeats must have the same rates"):
        merge([result(level(ONE)), result(level(ONE, 20, started_unix_s=9000.0))])
    with pytest.raises(ConfigError, match="different streams"):
        merge([result(level(ONE)), result(level(ONE, streams={}))])
    slow = level(ONE, timeline={"interval_s": 2.0, "slices": []})
    with pytest.raises(ConfigError, match="different durations"):
        merge([result(level(ONE)), result(slow)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("{}", "schema: required and missing"),
        ('{"schema": "modelyard/bench/v9"}', "schema: 'modelyard/bench/v9'"),
    ],
)
def test_a_file_that_is_no_result_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_result(path)


def test_a_damaged_histogram_is_said_and_not_guessed() -> None:
    record = result(level(ONE)).model_dump(by_alias=True)
    record["levels"][0]["total"]["e2e"]["histogram"] = "HISTnone"
    damaged = Result.model_validate(record)
    with pytest.raises(ConfigError, match="no HDR histogram"):
        merge([damaged, damaged])
