"""What `modelyard up` makes of a fleet spec, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from modelyard.cli.up_fleet import (
    fleet_at,
    is_fleet_spec,
    planned_config,
    require_one_proxy,
)
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError
from modelyard.testing.tiny_model import write_tiny_model

SERVE = {"proxy_location": "HeadOnly", "applications": []}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    write_tiny_model(tmp_path / "models" / "tiny" / "1.0.0")
    return Settings.from_environment()


def write_spec(folder: Path, nodes: int = 1) -> Path:
    record = {
        "schema": "modelyard/fleet/v1",
        "http_options": {"host": "127.0.0.1", "port": 8000},
        "proxy_location": "HeadOnly",
        "control": {"state_path": "~/.modelyard/control.sqlite"},
        "node_pools": {
            "shared": {
                "nodes": nodes,
                "accelerator": "L4",
                "devices": 2,
                "memory_gb": 24,
                "sharing": "shared",
            }
        },
        "models": {
            "tiny": {
                "kind": "embedder",
                "pool": ["shared"],
                "memory_gb": 3,
                "serve": {"max_ongoing_requests": 64},
                "versions": {"1.0.0": {"artifact": f"file://{folder}/models/tiny/1.0.0"}},
            }
        },
        "routes": {"tiny": {"stable": "tiny@1.0.0"}},
        "tenants": {"demo": {"tier": "paid", "models": ["*"]}},
        "keys": [{"id": "demo-1", "tenant": "demo", "sha256": "a" * 64, "roles": ["invoke"]}],
    }
    path = folder / "small.fleet.yaml"
    path.write_text(yaml.safe_dump(record))
    return path


def test_a_fleet_spec_is_told_from_a_serve_config(settings: Settings, tmp_path: Path) -> None:
    serve = tmp_path / "x.serve.yaml"
    serve.write_text(yaml.safe_dump(SERVE))
    assert is_fleet_spec(write_spec(tmp_path))
    assert not is_fleet_spec(serve)
    assert not is_fleet_spec(tmp_path / "none.fleet.yaml")


def test_a_planned_config_names_the_places_that_the_nodes_have(
    settings: Settings, tmp_path: Path
) -> None:
    spec = write_spec(tmp_path)
    text = planned_config(spec, settings).read_text()
    places = [node.place for node in fleet_at(spec).nodes]
    assert places == ["shared-0-d0", "shared-0-d1"]
    assert f"modelyard/place: {places[0]}" in text


def test_planned_again_nothing_moves(settings: Settings, tmp_path: Path) -> None:
    first = planned_config(write_spec(tmp_path), settings).read_text()
    again = planned_config(write_spec(tmp_path, nodes=2), settings).read_text()
    places = [line for line in first.splitlines() if "modelyard/place" in line]
    assert [line for line in again.splitlines() if "modelyard/place" in line] == places


def test_a_proxy_on_each_node_of_one_machine_is_refused(settings: Settings, tmp_path: Path) -> None:
    fleet = fleet_at(write_spec(tmp_path))
    serve = tmp_path / "x.serve.yaml"
    serve.write_text(yaml.safe_dump(SERVE))
    require_one_proxy(serve, fleet)
    serve.write_text(yaml.safe_dump(SERVE | {"proxy_location": "EveryNode"}))
    with pytest.raises(ConfigError, match=r"proxy_location must be HeadOnly.*share"):
        require_one_proxy(serve, fleet)


def test_a_missing_fleet_spec_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.fleet\.yaml: no such file: check the path"):
        fleet_at(tmp_path / "none.fleet.yaml")
