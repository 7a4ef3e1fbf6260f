"""`modelyard check` of a fleet spec goes through to the Serve config, at the spec's lines."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from modelyard.cli.main import app

FLEETS = Path(__file__).parents[2] / "configs" / "fleets"
SPEC = """schema: modelyard/fleet/v1
http_options: {host: 127.0.0.1}
control: {state_path: /var/lib/control.sqlite}
node_pools:
  gpu: {nodes: 2, accelerator: H100, memory_gb: 80, cpus: 16, sharing: shared, price_per_hour: 2}
models:
  chat:
    kind: generator
    pool: [gpu]
    memory_gb: 30
    serve: {max_ongoing_requests: 40}
    scaling: {min_replicas: 1, max_replicas: 2}
    versions: {"1.0.0": {artifact: "s3://bucket/m/chat/1.0.0"}}
routes:
  chat.v1: {stable: chat@1.0.0}
tenants: {demo: {models: ["*"]}}
"""


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "x.fleet.yaml"
    path.write_text(SPEC)
    return path


def check(spec: Path) -> tuple[int, str]:
    result = run("check", spec)
    return result.exit_code, result.stdout.replace(f"{spec.parent}/", "")


def test_a_fine_spec_counts_the_apps_that_it_makes(spec: Path) -> None:
    code, output = check(spec)
    assert code == 0
    assert "ok: 3 apps, 1 routes" in output


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "{stable: chat@1.0.0}",
            "{stable: chat@1.0.1}",
            "x.fleet.yaml:15: routes.chat.v1.stable: 'chat@1.0.1': no app of this file has",
        ),
        (
            "bucket/m/chat/1.0.0",
            "bucket/m/chat/2.0.0",
            "x.fleet.yaml:13: models.chat.versions.1.0.0",
        ),
        (
            "max_ongoing_requests: 40}",
            "max_ongoing_requests: 40, user_config: {}}",
            "x.fleet.yaml:11: models.chat.serve.user_config: a generator has no tunables",
        ),
        (
            "max_replicas: 2}",
            "max_replicas: 2, target_ongoing_requests: 50}",
            "x.fleet.yaml:12: models.chat.scaling.target_ongoing_requests: ",
        ),
        (
            "max_ongoing_requests: 40}",
            "max_ongoing_requests: 40, runtime_env: {env_vars: {HF_HUB_OFFLINE: x}}}",
            "x.fleet.yaml:11: models.chat.serve.runtime_env.env_vars.HF_HUB_OFFLINE: ",
        ),
        (
            "sqlite}\n",
            "sqlite}\ningress: {graceful_shutdown_timeout_s: 1}\n",
            "x.fleet.yaml:4: ingress.graceful_shutdown_timeout_s: ",
        ),
        (
            "host: 127.0.0.1",
            "port: 8000",
            "x.fleet.yaml:2: http_options",
        ),
        (
            "nodes: 2",
            "nodes: 0",
            "x.fleet.yaml:7: models.chat: the fleet does not fit:",
        ),
    ],
)
def test_a_fault_of_the_serve_config_is_told_at_the_line_of_the_spec(
    old: str, new: str, expected: str, spec: Path
) -> None:
    spec.write_text(SPEC.replace(old, new))
    code, output = check(spec)
    assert code == 1
    assert expected in output


def test_a_fault_is_told_once_however_many_cells_there_are(spec: Path) -> None:
    text = SPEC.replace("memory_gb: 30", "memory_gb: 60").replace(
        "max_ongoing_requests: 40}", "max_ongoing_requests: 40, user_config: {}}"
    )
    spec.write_text(text)
    assert check(spec)[1].count("a generator has no tunables") == 1


def test_the_local_fleet_deploys_what_the_local_serve_config_deploys(
    starter_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_HOME", str(starter_models.parent))
    spec = tmp_path / "local.fleet.yaml"
    shutil.copy(FLEETS / "local.fleet.yaml", spec)
    assert check(spec)[0] == 0
    serve = tmp_path / "local.serve.yaml"
    assert run("plan", spec, "-o", serve).exit_code == 0
    made, by_hand = (
        {one["name"]: one for one in yaml.safe_load(path.read_text())["applications"]}
        for path in (serve, FLEETS.parent / "local.serve.yaml")
    )
    assert made.keys() == by_hand.keys()
    for name, wanted in by_hand.items():
        planned, own = made[name], wanted["deployments"][0]
        assert planned.get("args") == wanted.get("args")
        assert planned["import_path"] == wanted["import_path"]
        for key in ("name", "max_ongoing_requests", "graceful_shutdown_timeout_s", "user_config"):
            assert planned["deployments"][0].get(key) == own.get(key), (name, key)
