"""Nodes beside a head: which of them are gone, and how they are started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cluster.emulated import EmulatedNode
from cluster.node_processes import StartedNode, missing, start_together, without_devices

# `ray start` of a test: leaves what it was told and a child called raylet, as the real one does.
JOIN = """
import json, os, subprocess, sys
folder = sys.argv[-1].removeprefix("--temp-dir=")
with open(f"{folder}/told", "w") as told:
    json.dump([sys.argv[1:], dict(os.environ)], told)
raylet = f"{folder}/raylet"
os.symlink(sys.executable, raylet)
late = "--num-cpus=9" in sys.argv
idle = [raylet, "-S", "-c", "import time; time.sleep(600)"]
if "--num-cpus=0" not in sys.argv:
    subprocess.Popen(idle, stdout=subprocess.DEVNULL)
if late:
    import time
    time.sleep(600)
sys.exit("--num-cpus=0" in sys.argv)
"""


def started(place: str = "a", created_later_s: float = 0.0) -> StartedNode:
    this = psutil.Process()
    return StartedNode(place, 1, this.pid, this.create_time() + created_later_s, "/nowhere")


def node(place: str, cpus: int = 1) -> EmulatedNode:
    return EmulatedNode(place, cpus, labels={"modelyard/place": place})


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[StartedNode, ...]]:
    """Two that came, of three that were started; the third's `ray start` failed."""
    script = tmp_path / "join.py"
    script.write_text(JOIN)
    made = start_together(
        [node("a"), node("b"), node("c", cpus=0)],
        [sys.executable, "-S", str(script)],
        os.environ | {"OF_THE_HEAD": "1", "CUDA_VISIBLE_DEVICES": "0"},
        temp_dir=tmp_path,
        logs=tmp_path,
    )
    yield made
    for one in made:
        if one.alive:
            psutil.Process(one.raylet).kill()


def test_a_node_whose_raylet_lives_is_not_missing() -> None:
    assert missing([node("a"), node("b")], [started("a")]) == (node("b"),)


def test_a_later_process_of_the_same_pid_is_not_the_raylet() -> None:
    assert missing([node("a")], [started("a", created_later_s=5.0)]) == (node("a"),)


def test_those_that_came_are_told_with_their_raylet(nodes: tuple[StartedNode, ...]) -> None:
    assert [one.place for one in nodes] == ["a", "b"]
    for one in nodes:
        assert one.alive
        assert psutil.Process(one.raylet).name() == "raylet"
        assert os.getsid(one.raylet) == one.session


def test_a_node_that_is_killed_is_not_alive(nodes: tuple[StartedNode, ...]) -> None:
    raylet = psutil.Process(nodes[0].raylet)
    raylet.kill()
    # Its parent has ended, so whoever adopts it may leave it as a zombie.
    psutil.wait_procs([raylet], timeout=5)
    assert not nodes[0].alive


def test_each_has_a_folder_of_its_own_and_the_heads_environment(
    nodes: tuple[StartedNode, ...],
) -> None:
    assert len({one.folder for one in nodes}) == len(nodes)
    for one in nodes:
        arguments, environment = json.loads((Path(one.folder) / "told").read_text())
        assert "--num-cpus=1" in arguments
        assert environment["OF_THE_HEAD"] == "1"
        assert json.loads(environment["RAY_OVERRIDE_LABELS"]) == {"modelyard/place": one.place}
        assert "CUDA_VISIBLE_DEVICES" not in environment


def test_nothing_is_left_of_nodes_that_are_late(tmp_path: Path) -> None:
    """One that came after all would stand beside the next start of its place."""
    script = tmp_path / "join.py"
    script.write_text(JOIN)
    made = start_together(
        [node("a", cpus=9), node("b", cpus=9)],
        [sys.executable, "-S", str(script)],
        dict(os.environ),
        temp_dir=tmp_path,
        logs=tmp_path,
        within_s=0.5,
    )
    assert made == ()
    left = [one for one in psutil.process_iter(["cmdline"]) if _is_of(one, tmp_path)]
    assert left == []


def _is_of(process: psutil.Process, folder: Path) -> bool:
    living = process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return living and any(str(folder) in word for word in process.info["cmdline"] or ())


def test_no_node_is_waited_for_after_the_time_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    wait_until_gone = subprocess.Popen.wait

    def wait(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout is None:
            return wait_until_gone(process)
        waits.append(timeout)
        now[0] += timeout
        raise subprocess.TimeoutExpired("ray", timeout)

    now = [0.0]
    monkeypatch.setattr("cluster.node_processes.time.monotonic", lambda: now[0])
    monkeypatch.setattr(subprocess.Popen, "wait", wait)
    script = tmp_path / "join.py"
    script.write_text("")
    nodes = [node("a"), node("b"), node("c")]
    command = [sys.executable, "-S", str(script)]
    start_together(nodes, command, dict(os.environ), temp_dir=tmp_path, logs=tmp_path, within_s=9.0)
    assert waits == [9.0, 0.0, 0.0]


def test_a_node_that_is_started_again_gets_a_new_folder(tmp_path: Path) -> None:
    (tmp_path / "n7").mkdir()
    script = tmp_path / "join.py"
    script.write_text(JOIN)
    [made] = start_together(
        [node("a")],
        [sys.executable, "-S", str(script)],
        dict(os.environ),
        temp_dir=tmp_path,
        logs=tmp_path,
    )
    assert made.folder == str(tmp_path / "n8")
    psutil.Process(made.raylet).kill()


def test_what_names_devices_is_left_out_of_the_environment() -> None:
    assert without_devices({"CUDA_VISIBLE_DEVICES": "0", "PATH": "/bin"}) == {"PATH": "/bin"}
