from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from deployments.vllm_progress import EngineProcesses

BURN = (
    "import time\nwhile time.process_time() < 0.2: pass\nprint('burned', flush=True)\nbreakpoint()"
)


@pytest.fixture
def child() -> Iterator[psutil.Process]:
    """A process under this one that has burned some CPU and then waits for a line."""
    with subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "burned\n"
        yield psutil.Process(process.pid)
        process.kill()


def test_the_cpu_of_the_processes_below_is_added_up_and_outlives_them(
    child: psutil.Process,
) -> None:
    processes = EngineProcesses()
    assert processes.cpu_s() >= 0.1  # the system counts in ticks of a hundredth, and rounds down
    child.kill()
    child.wait(timeout=30)
    assert processes.cpu_s() == 0.0


def test_a_stopped_process_is_killed_too(child: psutil.Process) -> None:
    child.suspend()
    EngineProcesses().kill()
    child.wait(timeout=30)
    assert not child.is_running()
