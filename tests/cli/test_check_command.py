import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from modelyard.cli.check import check

TABLE = "schema: modelyard/table/v1\nroutes:\n  chat: {stable: m@1.0.0}\n"

app = typer.Typer()
app.command()(check)
runner = CliRunner()


def run(tmp_path: Path, text: str, *options: str) -> tuple[int, str]:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    result = runner.invoke(app, [str(path), *options])
    return result.exit_code, result.stdout


def test_a_fine_file_prints_one_line_and_exits_0(tmp_path: Path) -> None:
    code, output = run(tmp_path, TABLE)
    assert code == 0
    assert output.startswith("ok: 0 apps, 1 routes, digest ")


def test_faults_are_printed_one_a_line_and_exit_1(tmp_path: Path) -> None:
    code, output = run(tmp_path, TABLE.replace("stable", "stabel"))
    assert code == 1
    assert output.splitlines() == [
        f"{tmp_path}/x.yaml:3: routes.chat.stable: required and missing: add it",
        f"{tmp_path}/x.yaml:3: routes.chat.stabel: 'm@1.0.0': unknown key: did you mean stable?",
    ]


@pytest.mark.parametrize("text", ["", "- a\n", "a: [\n", "\x00"])
def test_a_file_that_is_no_config_is_one_sentence(tmp_path: Path, text: str) -> None:
    code, output = run(tmp_path, text)
    assert code == 1
    assert len(output.splitlines()) == 1
    assert output.startswith(f"{tmp_path}/x.yaml:")


def test_json_carries_the_same_faults(tmp_path: Path) -> None:
    code, output = run(tmp_path, TABLE.replace("stable", "stabel"), "-o", "json")
    record = json.loads(output)
    assert code == 1
    assert (record["ok"], record["file"]) == (False, f"{tmp_path}/x.yaml")
    assert [fault["line"] for fault in record["faults"]] == [3, 3]
    assert record["faults"][1]["path"] == "routes.chat.stabel"


def test_json_of_a_fine_file_has_the_whole_digest(tmp_path: Path) -> None:
    code, output = run(tmp_path, TABLE, "-o", "json")
    record = json.loads(output)
    assert (code, record["ok"], record["routes"], record["faults"]) == (0, True, 1, [])
    assert len(record["digest"]) == 64


def test_wrong_usage_exits_2(tmp_path: Path) -> None:
    assert runner.invoke(app, [str(tmp_path / "missing.yaml")]).exit_code == 2
    assert runner.invoke(app, ["x" * 300]).exit_code == 2
    assert runner.invoke(app, []).exit_code == 2
    assert run(tmp_path, TABLE, "-o", "xml")[0] == 2
