"""The process of a local Ray head: spawned, and waited for."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx

from cluster.emulated import HEAD_LABELS, EmulatedNode
from cluster.local_environment import ray_command
from cluster.node_processes import without_devices
from cluster.ports import LocalPorts
from cluster.ray_token import ray_token
from cluster.running import Running, StartFailed, temp_dir_of

OBJECT_STORE_BYTES: Final = 256 * 1024 * 1024
# Twice what configs/local.serve.yaml asks for and more: of all that is redeployed at once, the new
# replicas start before the old ones stop. Ray counts, it does not pin.
LOGICAL_CPUS: Final = 8
START_WITHIN_S: Final = 180.0  # seconds on an idle machine; a busy one needs minutes


def spawn_head(
    ports: LocalPorts,
    run_id: str,
    declared: EmulatedNode | None,
    environment: Mapping[str, str],
    log_file: Path,
) -> subprocess.Popen[bytes]:
    """declared: what it declares in an emulated fleet; None for a platform of one node."""
    command = [
        ray_command("ray"),
        "start",
        "--head",
        "--block",
        "--disable-usage-stats",
        "--node-ip-address=127.0.0.1",
        f"--temp-dir={temp_dir_of(run_id)}",
        *(declared.options() if declared else _plain_options()),
        f"--object-store-memory={OBJECT_STORE_BYTES}",
        f"--port={ports.gcs}",
        f"--ray-client-server-port={ports.ray_client}",
        "--include-dashboard=true",
        "--dashboard-host=127.0.0.1",
        f"--dashboard-port={ports.dashboard}",
        f"--dashboard-agent-listen-port={ports.dashboard_agent}",
    ]
    if declared:
        environment = without_devices(environment) | declared.environment()
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("wb") as log:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_for_head(process: subprocess.Popen[bytes], state: Running, log_file: Path) -> None:
    """Until it takes deploys. Raises StartFailed."""
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise StartFailed(f"`ray start` ended with status {process.returncode}: see {log_file}")
        if serve_api_answers(state):
            return
        time.sleep(0.25)
    raise StartFailed(f"the Ray head did not answer within {START_WITHIN_S:.0f} s: see {log_file}")


def serve_api_answers(state: Running) -> bool:
    """Whether the head's dashboard takes Serve calls."""
    try:
        answer = httpx.get(
            f"{state.dashboard_url}/api/serve/applications/",
            headers={"Authorization": f"Bearer {ray_token()}"},
            timeout=5.0,
        )
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


def _plain_options() -> list[str]:
    labels = ",".join(f"{name}={value}" for name, value in HEAD_LABELS.items())
    return [f"--num-cpus={LOGICAL_CPUS}", f"--labels={labels}"]
