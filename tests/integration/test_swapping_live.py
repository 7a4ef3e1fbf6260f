"""Two models that share memory are loaded in turn; what a deploy would hurt is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from modelyard.config.demo import DEMO_KEY, OPS_KEY
from modelyard.contract.operations import Kind
from modelyard.tenancy.keys import hash_key
from modelyard.testing.tiny_model import write_tiny_model
from tests.integration.placement_platform import EmulatedPlatform

pytestmark = [pytest.mark.integration, pytest.mark.slow]

OFFSET = 770
IN_TURN = ("left", "right")
ALWAYS = "steady"
LOADED_WITHIN_S = 400.0  # an eviction waits for quiet and for its turn; a start for two busy cores


@pytest.fixture(scope="module")
def swapping(
    starter_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmulatedPlatform]:
    home = tmp_path_factory.mktemp("swapping")
    models = home / "models"
    models.mkdir()
    for folder in starter_models.iterdir():
        (models / folder.name).symlink_to(folder)
    for name in (*IN_TURN, ALWAYS):
        write_tiny_model(models / name / "1.0.0", name=name, kind=Kind.EMBEDDER)
    url = f"http://127.0.0.1:{8000 + OFFSET}"
    fleet, serve = home / "swap.fleet.yaml", home / "swap.serve.yaml"
    platform = EmulatedPlatform(home, url, fleet, serve)
    fleet.write_text(yaml.safe_dump(_fleet(models), sort_keys=False))
    platform.plan()
    try:
        platform.deploy("--emulate", str(fleet), "--port-offset", str(OFFSET))
        yield platform
    finally:
        platform.run("down")


def _fleet(models: Path) -> dict[str, Any]:
    return {
        "schema": "modelyard/fleet/v1",
        "http_options": {"host": "127.0.0.1", "port": 8000 + OFFSET},
        "proxy_location": "HeadOnly",
        "control": {"state_path": "~/.modelyard/control.sqlite"},
        "node_pools": {
            "shared": {
                "nodes": 1,
                "accelerator": "L4",
                "devices": 2,
                "memory_gb": 24,
                "cpus": 8,
                "sharing": "shared",
            }
        },
        "models": {
            name: {
                "kind": "embedder",
                "pool": ["shared"],
                "memory_gb": 15 if name in IN_TURN else 3,
                "swappable": name in IN_TURN,
                "serve": {"max_ongoing_requests": 16},
                "scaling": {"min_replicas": 0 if name in IN_TURN else 1, "max_replicas": 1},
                "versions": {"1.0.0": {"artifact": f"file://{models}/{name}/1.0.0"}},
            }
            for name in (*IN_TURN, ALWAYS)
        },
        "routes": {name: {"stable": f"{name}@1.0.0"} for name in (*IN_TURN, ALWAYS)},
        "tenants": {"demo": {"tier": "paid", "models": ["*"]}},
        "keys": [
            {"id": "demo-1", "tenant": "demo", "sha256": hash_key(DEMO_KEY), "roles": ["invoke"]},
            {"id": "ops-1", "sha256": hash_key(OPS_KEY), "roles": ["admin", "scrape"]},
        ],
    }


def ask(client: httpx.Client, alias: str) -> httpx.Response:
    return client.post("/v1/embeddings", json={"model": alias, "input": "Where is it?"})


def until_answered(client: httpx.Client, alias: str) -> int:
    """Ask as a caller does who is told to come back. Returns how often it was told so."""
    until = time.monotonic() + LOADED_WITHIN_S
    told = 0
    while time.monotonic() < until:
        began = time.monotonic()
        answer = ask(client, alias)
        if answer.status_code == 200:
            return told
        assert answer.status_code == 503, answer.text
        assert answer.json()["error"]["reason"] == "not_loaded"
        assert time.monotonic() - began < int(answer.headers["retry-after"]) + 5
        told += 1
        time.sleep(min(int(answer.headers["retry-after"]), 5))
    raise AssertionError(f"{alias} was never loaded")


def test_models_that_share_memory_are_loaded_in_turn(swapping: EmulatedPlatform) -> None:
    left, right = IN_TURN
    with swapping.client() as client:
        assert ask(client, ALWAYS).status_code == 200
        until_answered(client, left)
        assert until_answered(client, right) > 0
        assert ask(client, left).status_code == 503  # it made room
        assert until_answered(client, left) > 0
        areas = client.get("/admin/status", headers={"Authorization": f"Bearer {OPS_KEY}"})
        [area] = areas.json()["swap_areas"].values()
        assert area["evictions"] >= 2
        assert ask(client, ALWAYS).status_code == 200
    placement = swapping.status()["placement"]
    assert placement["mismatches"] == [], placement


def test_a_deploy_that_would_drop_what_moves_is_refused(
    swapping: EmulatedPlatform, tmp_path: Path
) -> None:
    app = f"{ALWAYS}@1.0.0"
    without = yaml.safe_load(swapping.serve.read_text())
    without["applications"] = [one for one in without["applications"] if one["name"] != app]
    # One dict for ingress and control, as the file's YAML anchor says.
    del without["applications"][0]["deployments"][0]["user_config"]["routes"][ALWAYS]
    file = tmp_path / "without.serve.yaml"
    file.write_text(yaml.safe_dump(without))
    same = swapping.run("check", "--live", str(swapping.serve))
    assert same.returncode == 0, same.stdout + same.stderr
    told = swapping.run("check", "--live", str(file))
    assert told.returncode == 0, told.stdout + told.stderr
    assert "DELETE" in told.stdout
    swapping.done(
        "override", "add", "drain", app, "--for", "600", "--reason", "move: to another device"
    )
    refused = swapping.run("check", "--live", str(file))
    assert refused.returncode == 1
    assert app in refused.stdout + refused.stderr
