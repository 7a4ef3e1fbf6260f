"""What a local Ray head is told."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from cluster.emulated import EmulatedNode
from cluster.head import LOGICAL_CPUS, spawn_head
from cluster.ports import LocalPorts


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The command and the environment of each process that would be started."""
    calls: list[Any] = []

    def note(command: list[str], *, env: dict[str, str], **_: Any) -> None:
        calls.append((command, env))

    monkeypatch.setattr(subprocess, "Popen", note)
    return calls


ENVIRONMENT = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0"}


def test_a_plain_head_has_the_label_that_ingresses_can_be_held_by(
    told: list[Any], tmp_path: Path
) -> None:
    spawn_head(LocalPorts(), "r1", None, ENVIRONMENT, tmp_path / "run" / "ray.log")
    [(command, environment)] = told
    assert f"--num-cpus={LOGICAL_CPUS}" in command
    assert "--labels=modelyard/node=head" in command
    assert environment == ENVIRONMENT


def test_the_head_of_a_fleet_declares_what_it_is_given(told: list[Any], tmp_path: Path) -> None:
    declared = EmulatedNode("cpu-0", 6, labels={"modelyard/place": "cpu-0"})
    spawn_head(LocalPorts(), "r1", declared, ENVIRONMENT, tmp_path / "run" / "ray.log")
    [(command, environment)] = told
    assert "--num-cpus=6" in command
    assert environment["RAY_OVERRIDE_LABELS"] == '{"modelyard/place": "cpu-0"}'
    assert "CUDA_VISIBLE_DEVICES" not in environment
