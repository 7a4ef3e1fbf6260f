import itertools
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

RUNS = itertools.count()


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


def result(
    *levels: Level, workload: Workload = WORKLOAD, runs: tuple[str, ...] = (), **options: Any
) -> Result:
    return Result(
        schema_="modelyard/bench/v1",
        modelyard="0",
        python="3",
        machine="m",
        options=Options.model_validate(
            {
                "url": "http://x",
                "tenants_with_keys": ("t",),
                "rates_per_s": tuple(one.rate_per_s for one in levels),
                "duration_s": 10,
                "warmup_s": 0,
                "goodput_percent": 95,
                "timeout_s": 60,
            }
            | options
        ),
        workload=workload,
        traces={},
        runs=runs or (f"run-{next(RUNS)}",),
        levels=levels,
        knee_per_s=None,
    )


ONE, OTHER = [0.1, 0.2, 0.5, 0.1], [0.2, 0.9]


def test_a_file_read_back_is_the_same_result(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    written = result(level(ONE), level(OTHER, 20))
    path.write_text(written.as_json())
    assert read_result(path) == written


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
    assert len(whole.runs) == 2
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
    ("name", "value"),
    [
        ("url", "http://y"),
        ("retry", "obey"),
        ("closed_loop_users", 2),
        ("warmup_s", 1.0),
        ("duration_s", 20.0),
        ("timeout_s", 5.0),
        ("goodput_percent", 50.0),
        ("connections", 4),
        ("new_connections", True),
    ],
)
def test_runs_of_other_options_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"the runs differ in {name} "):
        merge([result(level(ONE)), result(level(ONE), **{name: value})])


@pytest.mark.parametrize(
    ("field", "value"), [("model", "other"), ("route", "generate"), ("stream", False)]
)
def test_runs_of_other_streams_are_refused(field: str, value: object) -> None:
    record = WORKLOAD.model_dump(by_alias=True)
    record["streams"][1][field] = value
    other = Workload.model_validate(record)
    with pytest.raises(ConfigError, match="the runs differ in stream b "):
        merge([result(level(ONE)), result(level(ONE), workload=other)])


def test_generators_may_have_a_seed_and_a_rate_of_their_own_and_no_other_arrivals() -> None:
    record = WORKLOAD.model_dump(by_alias=True, exclude_none=True)
    shared = record | {"seed": 7, "arrivals": {"poisson": {"rate_per_s": 9}}}
    merge([result(level(ONE)), result(level(ONE), workload=Workload.model_validate(shared))])
    even = Workload.model_validate(record | {"arrivals": {"constant": {"rate_per_s": 2}}})
    with pytest.raises(ConfigError, match="the runs differ in arrivals "):
        merge([result(level(ONE)), result(level(ONE), workload=even)])


def test_one_run_given_twice_is_refused_also_inside_a_merged_one() -> None:
    one, other = result(level(ONE)), result(level(OTHER))
    with pytest.raises(ConfigError, match="one run is given twice"):
        merge([one, one])
    with pytest.raises(ConfigError, match="one run is given twice"):
        merge([merge([one, other]), other])


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
        merge([damaged, result(level(ONE))])
