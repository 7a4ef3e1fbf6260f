"""The servers that generator.py and embedder.py compare: ours, and somebody else's beside it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil

from modelyard.config.demo import DEMO_KEY
from tests.benchmarks.load import Job
from tests.benchmarks.measure import family
from tests.benchmarks.stage import Stage, wait
from tests.benchmarks.turns import Turn


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """A route of a server, the name it knows the model by, and the groups of its processes."""

    name: str
    port: int
    path: str
    model: str
    groups: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict)

    def job(self, bodies: Sequence[str], clients: int, seed: int, **length: Any) -> Job:
        """length: `seconds`, or `requests`."""
        return Job(
            self.port, self.path, bodies, [self.headers], clients=clients, seed=seed, **length
        )

    def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """One answer. Raises httpx.HTTPStatusError for any that is not a success."""
        url = f"http://127.0.0.1:{self.port}{self.path}"
        answer = httpx.post(url, json=body, headers=dict(self.headers), timeout=60.0)
        record: dict[str, Any] = answer.raise_for_status().json()
        return record


def platform(stage: Stage, path: str, alias: str, model_group: str) -> Server:
    """Ours, asked with the demonstration key of configs/local.serve.yaml."""
    groups = ("haproxy", "ingress:Ingress", model_group)
    key = {"Authorization": f"Bearer {DEMO_KEY}"}
    return Server("platform", stage.port, path, alias, groups, key)


def idle_percent(server: Server, turns: Mapping[Server, Sequence[Turn]]) -> str:
    """The most of a core that a server used while another one was asked."""
    others = [turn for other, each in turns.items() if other is not server for turn in each]
    most = max(sum(turn.cores(group) for group in server.groups) for turn in others)
    return f"{100 * most:.1f} %"


@contextmanager
def served(command: Sequence[str], env: Mapping[str, str], url: str) -> Iterator[int]:
    """Somebody else's server: its pid once `url` answers. When it does not, its log is shown."""
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            command, env=os.environ | env, stdout=log, stderr=log, start_new_session=True
        ) as process,
    ):
        try:
            wait(f"{url} answers", lambda: _answers(process, url))
            yield process.pid
        except (TimeoutError, RuntimeError):
            log.seek(0)
            print(log.read()[-4000:], file=sys.stderr)
            raise
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                for one in family(process.pid):
                    one.terminate()


def _answers(process: subprocess.Popen[bytes], url: str) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"{process.args!r} ended with status {process.returncode}")
    try:
        return httpx.get(url, timeout=5.0).status_code == 200
    except httpx.HTTPError:
        return False
