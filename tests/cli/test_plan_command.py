"""`modelyard plan`: files, exit codes and sentences."""

import json
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from modelyard.cli.plan import plan
from modelyard.contract.errors import ConfigError
from placement.infeasible import Infeasible
from placement.parse import cells_of

SPEC = """schema: modelyard/fleet/v1
http_options: {host: 127.0.0.1, port: 8000}
control: {state_path: ~/.modelyard/control.sqlite}
node_pools:
  gpu: {nodes: 3, accelerator: L4, memory_gb: 24, cpus: 16, sharing: shared, zone: a}
models:
  chat:
    kind: generator
    pool: [gpu]
    memory_gb: 9
    serve: {max_ongoing_requests: 40}
    scaling: {min_replicas: 1, max_replicas: 3}
    versions: {"1.0.0": {artifact: "s3://models.example/m/chat/1.0.0"}}
routes: {chat: {stable: chat@1.0.0}}
tenants: {demo: {models: ["*"]}}
"""
TEAM = """schema: modelyard/fleet/v1
models:
  vectors:
    kind: embedder
    pool: [gpu]
    memory_gb: 3
    serve: {max_ongoing_requests: 64}
    versions: {"1.0.0": {artifact: "s3://models.example/m/vectors/1.0.0"}}
routes: {vectors: {stable: vectors@1.0.0}}
"""
app = typer.Typer()
app.command()(plan)
runner = CliRunner()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path / "home"))


def run(tmp_path: Path, *options: str, spec: str = SPEC) -> Result:
    (tmp_path / "x.fleet.yaml").write_text(spec)
    return runner.invoke(app, [str(tmp_path / "x.fleet.yaml"), *options])


def written(tmp_path: Path, *options: str, spec: str = SPEC) -> bytes:
    serve = tmp_path / "x.serve.yaml"
    result = run(tmp_path, "-o", str(serve), *options, spec=spec)
    assert result.exit_code == 0, result.output
    return serve.read_bytes()


def places(serve: bytes) -> dict[str, tuple[str, ...]]:
    return {cell.app: cell.places for cell in cells_of(yaml.safe_load(serve))}


def test_the_same_input_is_the_same_bytes(tmp_path: Path) -> None:
    first = written(tmp_path)
    assert written(tmp_path) == first
    (tmp_path / "x.serve.yaml").unlink()
    assert written(tmp_path) == first


def test_what_is_placed_stays_until_it_is_planned_afresh(tmp_path: Path) -> None:
    first = written(tmp_path)
    smaller = SPEC.replace("memory_gb: 9", "memory_gb: 3")
    kept = written(tmp_path, spec=smaller)
    assert places(kept) == places(first)
    fresh = written(tmp_path, "--fresh", spec=smaller)
    assert len(places(fresh)) < len(places(first))


def test_a_lost_machine_is_used_no_more(tmp_path: Path) -> None:
    (gone,) = places(written(tmp_path))["chat@1.0.0"]
    after = places(written(tmp_path, "--lost", gone.removesuffix("-d0")))
    assert all(gone not in each for each in after.values())


def test_team_files_are_merged(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(TEAM)
    spec = SPEC.replace("http_options", "include: [team.yaml]\nhttp_options", 1)
    assert "vectors@1.0.0" in places(written(tmp_path, spec=spec))


@pytest.mark.parametrize(
    ("words", "line", "code"),
    [
        ("add-node=gpu:1", "all machines, hour                3.00          4.00", 0),
        ("remove-node=gpu-0", "replicas placed                      3             3", 0),
        ("lose-zone=a", "then the fleet does not fit:", 1),
        ("add-model=x:memory_gb=20,pool=gpu", "  + x@supposed x1 at ", 0),
        ("replicas=chat:7", "then the fleet does not fit:", 1),
        ("replicas=chat:1", "  - chat@1.0.0 x", 0),
        ("swappable=chat", "  + swap:gpu x1 at ", 0),
    ],
)
def test_a_what_if_is_shown_and_nothing_is_written(
    tmp_path: Path, words: str, line: str, code: int
) -> None:
    serve = tmp_path / "x.serve.yaml"
    result = run(tmp_path, "-o", str(serve), "--what-if", words)
    assert result.exit_code == code, result.output
    assert line in result.stdout
    assert not serve.exists()


def test_what_does_not_fit_is_an_error_with_ways_out_and_a_drawing(tmp_path: Path) -> None:
    large = SPEC.replace("max_replicas: 3", "max_replicas: 7")
    serve, svg = tmp_path / "x.serve.yaml", tmp_path / "x.svg"
    result = run(tmp_path, "-o", str(serve), "--svg", str(svg), "--json", spec=large)
    assert result.exit_code == 1
    assert isinstance(result.exception, Infeasible)
    assert "1 more machine in pool gpu" in str(result.exception)
    assert json.loads(result.stdout)["why_not"] == str(result.exception)
    assert svg.read_text().startswith("<svg ")
    assert not serve.exists()


def test_partial_writes_what_fits_and_says_that_something_is_missing(tmp_path: Path) -> None:
    serve = tmp_path / "x.serve.yaml"
    large = SPEC.replace("max_replicas: 3", "max_replicas: 7")
    result = run(tmp_path, "-o", str(serve), "--partial", spec=large)
    assert result.exit_code == 1
    assert sum(cell.replicas for cell in cells_of(yaml.safe_load(serve.read_bytes()))) == 6


def test_json_has_every_place_and_cell(tmp_path: Path) -> None:
    record = json.loads(run(tmp_path, "--json").stdout)
    assert record["summary"]["replicas"] == 3
    assert [place["place"] for place in record["places"]] == [f"gpu-{i}-d0" for i in range(3)]
    assert sum(cell["max_replicas"] for cell in record["cells"]) == 3
    assert record["why_not"] == ""


def test_a_wrong_spec_is_told_with_file_line_field_and_value(tmp_path: Path) -> None:
    result = run(tmp_path, spec=SPEC.replace("pool: [gpu]", "pool: [gup]"))
    assert result.exit_code == 1
    assert f"{tmp_path}/x.fleet.yaml:9: models.chat.pool.0: 'gup': no such pool" in result.stderr
    assert "did you mean gpu?" in result.stderr


def test_a_missing_artifact_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    spec = SPEC.replace("s3://models.example/m", "file://~/.modelyard/models")
    serve = tmp_path / "x.serve.yaml"
    result = run(tmp_path, "-o", str(serve), spec=spec)
    assert result.exit_code == 1
    assert "x.fleet.yaml:13: models.chat.versions.1.0.0.artifact" in result.stderr
    assert not serve.exists()


def test_wrong_usage_is_exit_2(tmp_path: Path) -> None:
    assert runner.invoke(app, [str(tmp_path / "none.yaml")]).exit_code == 2
    assert run(tmp_path, "--defrag").exit_code == 2
    assert run(tmp_path, "--moves", "3").exit_code == 2


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    serve = tmp_path / "x.serve.yaml"
    serve.write_text("applications: []\n")
    for fresh in ([], ["--fresh"]):
        result = run(tmp_path, "-o", str(serve), *fresh)
        assert isinstance(result.exception, ConfigError)
        assert "is not made by `modelyard plan`" in str(result.exception)
    assert serve.read_text() == "applications: []\n"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "applications: 5",
        "applications: [1]",
        "applications: [{name: 3, import_path: a:b}]",
        "applications: [",
        "- 1",
    ],
)
def test_a_damaged_file_gets_a_sentence_and_fresh_replaces_it(tmp_path: Path, body: str) -> None:
    good = written(tmp_path)
    serve = tmp_path / "x.serve.yaml"
    serve.write_bytes(good.split(b"\n")[0] + f"\n{body}\n".encode())
    result = run(tmp_path, "-o", str(serve))
    assert isinstance(result.exception, ConfigError)
    assert str(serve) in str(result.exception)
    assert written(tmp_path, "--fresh") == good


def test_a_what_if_draws_nothing_and_says_so(tmp_path: Path) -> None:
    spec = tmp_path / "x.fleet.yaml"
    spec.write_text("schema: modelyard/fleet/v1\n")
    asked = [str(spec), "--what-if", "lose-zone=a", "--svg", str(tmp_path / "x.svg")]
    made = runner.invoke(app, asked)
    assert made.exit_code == 2
    assert "--what-if draws nothing" in made.output
