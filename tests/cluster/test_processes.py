import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from cluster.processes import MARK, Run

WAIT = "import sys; print('up', flush=True); sys.stdin.read()"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAIT}"


class Runs:
    """Starts marked processes and leaves none behind."""

    def __init__(self) -> None:
        self.run_id = f"test-{uuid4().hex}"
        self.run = Run(self.run_id, 0, Path("/nowhere"))
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, code: str = WAIT, run_id: str | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", code],
            env=os.environ | {MARK: run_id or self.run_id},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


@pytest.fixture
def runs() -> Iterator[Runs]:
    started = Runs()
    yield started
    started.close()


def test_a_run_is_every_process_with_its_mark_and_no_other(runs: Runs) -> None:
    mine = {runs.start().pid, runs.start().pid}
    runs.start(run_id=f"{runs.run_id}-other")
    assert {process.pid for process in runs.run.processes()} == mine


def test_this_process_is_never_part_of_a_run(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, runs.run_id)
    assert runs.run.processes() == []


def test_stopping_a_run_ends_it_and_spares_the_others(runs: Runs) -> None:
    mine = [runs.start(), runs.start()]
    other = runs.start(run_id=f"{runs.run_id}-other")
    assert runs.run.stop() == 2
    assert runs.run.processes() == []
    assert [process.poll() is None for process in mine] == [False, False]
    assert other.poll() is None


def test_a_process_that_ignores_the_request_is_killed(runs: Runs) -> None:
    deaf = runs.start(DEAF)
    assert runs.run.stop(patience_s=0.0) == 1
    assert deaf.poll() is not None


def test_a_child_of_a_marked_process_belongs_to_the_run(runs: Runs) -> None:
    code = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', "
        "'import time; time.sleep(60)']); print('up', flush=True); sys.stdin.read()"
    )
    runs.start(code)
    assert len(runs.run.processes()) == 2
    assert runs.run.stop() == 2


def test_a_run_that_is_gone_is_stopped_already() -> None:
    assert Run(f"test-{uuid4().hex}", 0, Path("/nowhere")).stop() == 0


def test_a_process_that_hides_its_environment_is_known_by_session_and_logs(
    runs: Runs, tmp_path: Path
) -> None:
    """Ray's agents write their title over their environment."""
    log = tmp_path / "agent.log"
    code = f"log = open({str(log)!r}, 'w'); {WAIT}"
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert Run("no-mark", process.pid, tmp_path / "other").processes() == []
        assert Run("no-mark", process.pid + 1, tmp_path).processes() == []
        assert [p.pid for p in Run("no-mark", process.pid, tmp_path).processes()] == [process.pid]
        of_a_node = Run("no-mark", process.pid + 1, tmp_path, frozenset({process.pid}))
        assert [p.pid for p in of_a_node.processes()] == [process.pid]
    finally:
        process.kill()
        process.communicate()
