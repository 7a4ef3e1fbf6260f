"""`modelyard check --live` of a fleet spec, from nodes as Ray tells them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from modelyard.cli import check as check_module
from modelyard.cli import live_inventory as module
from modelyard.cli.live_inventory import LiveInventory, live_inventory
from modelyard.config.check import Report
from placement.live import Difference
from placement.ray_state import RayNode

SPEC = """
schema: modelyard/fleet/v1
http_options: {host: 127.0.0.1, port: 8000}
control: {state_path: /tmp/control.sqlite}
node_pools: {cpu: {nodes: 2, memory_gb: 16, cpus: 8}}
models:
  emb:
    kind: embedder
    pool: [cpu]
    memory_gb: 1
    serve: {max_ongoing_requests: 64}
    versions: {1.0.0: {artifact: "file:///m/emb/1.0.0"}}
routes: {embed: {stable: emb@1.0.0}}
"""


def node(place: str, gigabytes: float = 16) -> RayNode:
    return RayNode(f"n-{place}", place, True, {"CPU": 8.0, "memory": gigabytes * 1e9})


def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *nodes: RayNode) -> LiveInventory:
    @contextmanager
    def joined(_: Any) -> Iterator[None]:
        yield

    monkeypatch.setattr(module, "running_here", lambda: None)
    monkeypatch.setattr(module, "connected", joined)
    monkeypatch.setattr(module, "read_nodes", lambda: nodes)
    path = tmp_path / "x.fleet.yaml"
    path.write_text(SPEC)
    return live_inventory(path)


def test_a_cluster_with_every_place_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = inventory(tmp_path, monkeypatch, node("cpu-0"), node("cpu-1"), node(""))
    assert (found.ok, found.lines()) == (True, ["all 2 places are there"])


def test_a_machine_more_is_told_and_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = (node("cpu-0"), node("cpu-1"), node("cpu-2"))
    found = inventory(tmp_path, monkeypatch, *nodes)
    assert found.ok
    assert found.lines() == ["unknown   cpu-2: no machine of the spec has this name"]


def test_a_machine_that_is_not_there_or_smaller_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = inventory(tmp_path, monkeypatch, node("cpu-1", 8))
    assert not found.ok
    assert [one["kind"] for one in found.as_record()["differences"]] == ["missing", "smaller"]
    assert Difference("missing", "cpu-0", "cpu-0: no alive node has its label") in found.differences


def test_the_command_takes_a_fleet_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = LiveInventory(2, (Difference("missing", "cpu-0", "cpu-0: no alive node"),))
    monkeypatch.setattr(check_module, "live_inventory", lambda path: found)
    monkeypatch.setattr(check_module, "check_file", lambda path: Report((), 1, 1, "d" * 64))
    path = tmp_path / "x.fleet.yaml"
    path.write_text(SPEC)
    app = typer.Typer()
    app.command()(check_module.check)
    result = CliRunner().invoke(app, [str(path), "--live"])
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:] == ["missing   cpu-0: no alive node"]
