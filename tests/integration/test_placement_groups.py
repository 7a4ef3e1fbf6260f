"""Rendered cells on a real Ray cluster: as planned, waiting for ever, a device lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

JOB = Path(__file__).parent / "jobs" / "cells_on_a_cluster.py"
AS_PLANNED = [
    ["big@1.0.0", "box-0", ["0", "1"]],
    ["emb@1.0.0", "cpu-0", []],
    ["emb@1.0.0", "cpu-0", []],
    ["gen@1.0.0", "d0", ["0"]],
    ["gen@1.0.0", "d0", ["0"]],
    ["gen@1.0.0--b", "d1", ["0"]],
]


@pytest.fixture(scope="module")
def readings() -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(JOB)],
        env=os.environ | {"PYTHONPATH": str(JOB.parent)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = [line for line in done.stdout.splitlines() if line.startswith("READING ")]
    return [json.loads(line.removeprefix("READING ")) for line in told]


@pytest.mark.integration
def test_every_replica_is_where_it_was_planned_and_says_so(
    readings: list[dict[str, Any]],
) -> None:
    first = readings[0]
    assert (first["mismatches"], first["pending"]) == ([], {})
    assert first["reports"] == AS_PLANNED
    assert first["places"] == [4, 4]


@pytest.mark.integration
def test_what_ray_lets_wait_for_ever_is_an_alarm_with_its_reason(
    readings: list[dict[str, Any]],
) -> None:
    assert readings[1]["pending"] == {
        "mid@1.0.0": ["fragmentation", True],
        "lost@1.0.0": ["missing_label", True],
        "odd@1.0.0": ["undeclared_resource", True],
    }
    missing = [[app, "missing"] for app in ("lost@1.0.0", "mid@1.0.0", "odd@1.0.0")]
    assert readings[1]["mismatches"] == missing


@pytest.mark.integration
def test_a_lost_device_is_a_missing_label_and_a_missing_replica(
    readings: list[dict[str, Any]],
) -> None:
    last = readings[2]
    assert "d1" not in last["nodes"]
    assert last["pending"]["gen@1.0.0--b"][0] == "missing_label"
    assert ["gen@1.0.0--b", "missing"] in last["mismatches"]
