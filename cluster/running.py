"""What is known of a local platform that was started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cluster.node_processes import StartedNode
from cluster.ports import LocalPorts
from cluster.processes import Run
from modelyard.contract.errors import ModelyardError


class StartFailed(ModelyardError):
    """The local cluster did not come up. The text says which step and where its log is."""


@dataclass(frozen=True, slots=True)
class Running:
    """A started head: what `down`, `status` and the next `up` need to know of it.

    head_place: its label `modelyard/place`, None where the platform is of no fleet spec. nodes:
    those that joined it.
    """

    run_id: str
    pid: int
    created: float
    ports: LocalPorts
    http_port: int
    haproxy: bool
    config_digest: str = ""
    code_digest: str = ""
    head_place: str | None = None
    nodes: tuple[StartedNode, ...] = ()

    @property
    def dashboard_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.dashboard}"

    @property
    def logs(self) -> Path:
        """Where Ray and Serve log; each replica has a file under `serve`."""
        return temp_dir_of(self.run_id) / "session_latest" / "logs"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports.gcs}"


def run_of(run_id: str, head_pid: int, node_pids: frozenset[int] = frozenset()) -> Run:
    return Run(run_id, head_pid, temp_dir_of(run_id), node_pids)


def temp_dir_of(run_id: str) -> Path:
    """Ray's and HAProxy's folder of a run: their logs and sockets.

    Under /tmp and short, because a socket's path is limited to 97 characters for HAProxy, of which
    Serve takes 68 for the node's id and the file's name.
    """
    return Path("/tmp") / f"modelyard-{run_id}"
