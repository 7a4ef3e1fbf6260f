"""One plan or move at a time on a Serve config."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from modelyard.cli.plan import plan
from modelyard.cli.plan_file import alone_with
from modelyard.contract.errors import ConfigError

app = typer.Typer()
app.command()(plan)


def test_a_second_one_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    serve = tmp_path / "x.serve.yaml"
    with alone_with(serve):
        second = alone_with(tmp_path / "." / "x.serve.yaml")
        with pytest.raises(ConfigError, match="another `modelyard plan` is at work"), second:
            raise AssertionError("two hold it")
        with alone_with(tmp_path / "other.serve.yaml"):
            pass
    with alone_with(serve):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with alone_with(tmp_path / "typo" / "x.serve.yaml"), alone_with(None):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ((), True),
        (("--fresh",), True),
        (("--defrag", "--execute"), True),
        (("--defrag",), False),
        (("--what-if", "add-node=gpu:1"), False),
    ],
)
def test_what_writes_is_refused_and_what_shows_is_not(
    tmp_path: Path, options: tuple[str, ...], waits: bool
) -> None:
    spec, serve = tmp_path / "x.fleet.yaml", tmp_path / "x.serve.yaml"
    spec.write_text("schema: modelyard/fleet/v1\n")
    with alone_with(serve):
        made = CliRunner().invoke(app, [str(spec), "-o", str(serve), *options])
    # The spec's own faults come after the lock.
    assert isinstance(made.exception, ConfigError) == waits
    assert made.exit_code == 1


@pytest.mark.parametrize("option", ["--moves", "--at-once", "--pause-s", "--ready-within-s"])
def test_what_is_of_a_defrag_needs_one(tmp_path: Path, option: str) -> None:
    (tmp_path / "x.fleet.yaml").touch()
    made = CliRunner().invoke(app, [str(tmp_path / "x.fleet.yaml"), option, "5"])
    assert made.exit_code == 2
    assert "are of --defrag" in made.output
