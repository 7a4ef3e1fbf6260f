"""What stands in the way of a local platform is said before anything is started."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from cluster.emulated import EmulatedFleet, EmulatedNode
from cluster.local import LocalCluster
from cluster.node_processes import StartedNode
from cluster.ports import LocalPorts
from cluster.running import Running
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalCluster:
    """A cluster of an empty home that fails the test if it starts a process."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"a process was started: {arguments}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(subprocess, "run", refuse)
    return LocalCluster(Settings(tmp_path, tmp_path / "secret"))


def start(cluster: LocalCluster) -> Running:
    return cluster.start(LocalPorts(), 8000, haproxy=True)


def test_too_little_memory_is_said_with_both_figures(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1.2e9))
    with pytest.raises(ConfigError, match=r"1\.2 GB of memory are free.* need 5 GB: close"):
        start(cluster)


def test_too_little_disk_is_said_with_the_folder(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=64e9))
    monkeypatch.setattr(psutil, "disk_usage", lambda path: SimpleNamespace(free=0.3e9))
    with pytest.raises(ConfigError, match=rf"0\.3 GB of disk are free at {tmp_path}"):
        start(cluster)


def test_two_commands_at_once_are_refused(cluster: LocalCluster) -> None:
    with (
        cluster.exclusive(),
        pytest.raises(ConfigError, match=r"another `modelyard up` or `down` is at work"),
        cluster.exclusive(),
    ):
        pass


def test_the_lock_is_free_again_afterwards(cluster: LocalCluster) -> None:
    with cluster.exclusive():
        pass
    with cluster.exclusive():
        pass


def test_nothing_runs_where_nothing_was_started(cluster: LocalCluster) -> None:
    assert cluster.running() is None
    assert cluster.stop() == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "null"])
def test_a_broken_state_file_counts_as_nothing_running(
    cluster: LocalCluster, tmp_path: Path, text: str
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "local.json").write_text(text)
    assert cluster.running() is None
    assert cluster.stop() == 0


def test_a_process_id_that_was_given_to_another_is_not_the_head(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    this = psutil.Process()
    state = Running("r", this.pid, this.create_time(), LocalPorts(), 8000, True)
    cluster.remember(state)
    assert cluster.running() == state
    record = json.loads((tmp_path / "run" / "local.json").read_text())
    record["created"] -= 1000
    (tmp_path / "run" / "local.json").write_text(json.dumps(record))
    assert cluster.running() is None


def running_head(**changes: Any) -> Running:
    this = psutil.Process()
    state = Running("r", this.pid, this.create_time(), LocalPorts(), 8000, True)
    return replace(state, **changes)


def test_the_nodes_of_an_emulated_fleet_are_remembered(cluster: LocalCluster) -> None:
    node = StartedNode("a", 1, 2, 3.0, "/nowhere")
    cluster.remember(running_head(head_place="", nodes=(node,)))
    found = cluster.running()
    assert found is not None
    assert found.nodes == (node,)


@pytest.mark.parametrize("head", [None, "cpu-0"])
def test_nodes_join_no_head_of_another_fleet(cluster: LocalCluster, head: str | None) -> None:
    with pytest.raises(ConfigError, match=r"started for another fleet, or for none.*make down"):
        cluster.join(running_head(head_place=head), EmulatedFleet(EmulatedNode("", 2), ()))


def test_a_fleet_that_is_all_there_starts_nothing(cluster: LocalCluster) -> None:
    this = psutil.Process()
    node = StartedNode("a", 1, this.pid, this.create_time(), "/nowhere")
    state = running_head(head_place="", nodes=(node,))
    fleet = EmulatedFleet(EmulatedNode("", 2), (EmulatedNode("a", 1),))
    assert cluster.join(state, fleet).nodes == (node,)
