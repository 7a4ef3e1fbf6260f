"""`modelyard up` as a stranger meets it: again, in the way of others, and with a wrong config."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

GENERATOR = "smollm2-135m-instruct@1.0.0"


def up(platform: Any, config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = platform.run("up", "--config", str(config), *options)
    return done


def test_up_again_changes_nothing_and_shows_the_answers(platform: Any) -> None:
    before = platform.replica(GENERATOR).pid
    done = up(platform, platform.config)
    assert done.returncode == 0, done.stderr
    assert "The capital of France is Paris." in done.stdout
    assert "curl -s" in done.stdout
    assert platform.replica(GENERATOR).pid == before


def test_a_wrong_config_names_file_line_and_field_and_leaves_the_platform_alone(
    platform: Any, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(platform.config.read_text().replace("max_output_tokens: 512", "max_tokenz: 5"))
    done = up(platform, wrong)
    assert done.returncode == 1
    assert f"{wrong}:" in done.stderr
    assert "max_tokenz" in done.stderr
    assert "Traceback" not in done.stderr
    assert platform.replica(GENERATOR).pid


def test_a_busy_port_is_one_sentence_and_nothing_is_left_behind(
    platform: Any, tmp_path: Path
) -> None:
    config = tmp_path / "busy.yaml"
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        busy = platform.config.read_text().replace(
            f"port: {8000 + platform.port_offset}", f"port: {port}"
        )
        config.write_text(busy)
        done = start_elsewhere(platform, tmp_path / "home", config, "--port-offset", "400")
    assert done.returncode == 1
    assert f"port {port} (http) is busy" in done.stderr
    assert f"process {os.getpid()}" in done.stderr
    assert not (tmp_path / "home" / "run" / "local.json").exists()


def test_another_ray_cluster_in_the_way_is_named(platform: Any, tmp_path: Path) -> None:
    config = tmp_path / "free.yaml"
    config.write_text(
        platform.config.read_text().replace(f"port: {8000 + platform.port_offset}", "port: 8777")
    )
    offset = str(platform.port_offset)
    done = start_elsewhere(platform, tmp_path / "home", config, "--port-offset", offset)
    assert done.returncode == 1
    assert "another Ray cluster" in done.stderr
    assert platform.replica(GENERATOR).pid


def start_elsewhere(
    platform: Any, home: Path, config: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """`modelyard up` from another installation, with the same models."""
    home.mkdir()
    (home / "models").symlink_to(platform.home / "models")
    return subprocess.run(
        [str(Path(sys.executable).parent / "modelyard"), "up", "--config", str(config), *options],
        env=os.environ | {"MODELYARD_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
