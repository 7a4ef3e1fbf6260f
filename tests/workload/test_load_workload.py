import re
from pathlib import Path

import pytest

from modelyard.contract.errors import ConfigError
from modelyard.workload.load import load_workload
from modelyard.workload.plan import plan

EXAMPLES = sorted((Path(__file__).parents[2] / "configs" / "workloads").glob("*.yaml"))
GOOD = """\
schema: modelyard/workload/v1
duration_s: 10
arrivals: {replay: {file: t.csv}}
streams:
- {name: a, route: chat, model: m, input_tokens: {fixed: 3}}
"""


def test_a_trace_is_found_from_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("offset_s,input_tokens,output_tokens\n0,1,1\n1,1,1\n")
    path = tmp_path / "w.yaml"
    path.write_text(GOOD)
    workload, traces = load_workload(path)
    assert len(list(plan(workload, traces, 10))) == 2


def test_every_fault_is_said_with_file_line_field_and_value(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        GOOD.replace("duration_s: 10", "duration: 10").replace("{fixed: 3}", "{fixed: -3}")
    )
    with pytest.raises(ConfigError) as caught:
        load_workload(path)
    lines = str(caught.value).splitlines()
    assert f"{path}:2: duration: 10: unknown key: did you mean duration_s?" in lines
    assert any(f"{path}:5: streams.0.input_tokens.fixed: -3: " in line for line in lines)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_shipped_examples_load_and_send_something(path: Path) -> None:
    workload, traces = load_workload(path)
    assert list(plan(workload, traces, 30))


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ("model: m", "model: m, weight: .inf", "streams.0.weight"),
        ("model: m", "model: m, slo: {ttft_s: .inf}", "streams.0.slo.ttft_s"),
        ("model: m", "model: m, slo: {e2e_s: .nan}", "streams.0.slo.e2e_s"),
        ("t.csv", "t.csv, speed: .inf", "arrivals.replay.speed"),
        ("t.csv", "t.csv, from_s: .inf", "arrivals.replay.from_s"),
    ],
)
def test_a_number_that_is_none_is_a_fault(
    tmp_path: Path, before: str, after: str, field: str
) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(GOOD.replace(before, after))
    with pytest.raises(ConfigError, match=re.escape(field)):
        load_workload(path)


@pytest.mark.parametrize("rows", ["0,1,1\n", "3,1,1\n3,1,1\n"])
def test_a_recording_of_one_moment_has_no_rate(tmp_path: Path, rows: str) -> None:
    (tmp_path / "t.csv").write_text("offset_s,input_tokens,output_tokens\n" + rows)
    path = tmp_path / "w.yaml"
    path.write_text(GOOD.replace("file: t.csv", "file: t.csv, from_s: " + rows[0]))
    workload, traces = load_workload(path)
    with pytest.raises(ConfigError, match="came at one moment, so it has no rate"):
        workload.mean_per_s(traces)


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n"])
def test_a_file_without_a_workload_is_told_what_belongs_there(tmp_path: Path, text: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="streams") as caught:
        load_workload(path)
    assert "applications" not in str(caught.value)
