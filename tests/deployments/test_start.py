"""A replica's start and life on a tiny real model, with a board and a Serve of the test's own."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from deployments import shell as shell_module
from deployments import vitals
from deployments.embedder import Embedder
from deployments.generator import Generator
from deployments.replica import Place
from deployments.reporter import Reporter
from deployments.shell import declared_bytes_each
from deployments.start import started
from modelyard.artifacts.manifest import Limits, Manifest
from modelyard.artifacts.manifest_parts import Device
from modelyard.config.model_args import GeneratorArgs, SmallModelArgs, WatchdogArgs
from modelyard.config.settings import Settings
from modelyard.contract.envelope import Item
from modelyard.contract.errors import StartError
from modelyard.contract.operations import Operation
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.drain import DrainOrder
from modelyard.lifecycle.phases import START, Phase
from modelyard.lifecycle.report import ReplicaReport
from modelyard.testing.manifests import a_manifest
from modelyard.testing.tiny_model import write_tiny_model

DRAIN_S = 30.0


class Board:
    """Keeps every post. `deaf`: the last words are not heard."""

    def __init__(self) -> None:
        self.posts: list[ReplicaReport] = []
        self.deaf = False

    def post(self, report: ReplicaReport) -> None:
        self.posts.append(report)

    async def confirm(self, report: ReplicaReport) -> DrainOrder | None:
        self.posts.append(report)
        return None

    def confirm_blocking(self, report: ReplicaReport, timeout_s: float) -> None:
        if self.deaf:
            raise ConnectionError("no board")
        self.posts.append(report)


class Replica:
    """As Serve would describe it."""

    app, replica, node, slots, draining = "tiny@1.0.0", "r-1", "n-1", 4, False
    place, gpu_ids, drain_s = Place(cpus=1, gpus=0), (), DRAIN_S
    place_name, placement_group = "box-d0", "pg-1"


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny" / "1.0.0"
    write_tiny_model(folder, limits=Limits(max_context_tokens=128, drain_s=DRAIN_S))
    return folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    Settings.from_environment().ensure_secret()


def reporter_of(board: Board, replica: Any) -> Reporter:
    return Reporter(replica, board, lambda: 0)  # type: ignore[arg-type]


def embedder(folder: Path, **args: Any) -> Embedder:
    return Embedder(SmallModelArgs(artifact=folder.as_uri(), **args))


async def test_a_start_posts_each_phase_in_order(folder: Path, board: Board) -> None:
    replica: Any = Replica()
    held = await started(embedder(folder), replica, reporter_of(board, replica))
    assert held.folder == folder
    seen = list(dict.fromkeys(report.phase for report in board.posts))
    assert seen == [*START[1:], Phase.READY]
    assert board.posts[-1].ready


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_deployment_that_would_cut_answers_is_refused_with_both_figures(
    folder: Path, board: Board, deaf: bool
) -> None:
    """Also where the board is deaf: Serve has the cause too."""
    board.deaf = deaf
    replica: Any = Replica()
    replica.drain_s = 20.0
    words = (
        r"Verifying: the deployment's graceful_shutdown_timeout_s is 20, and "
        r"tiny@1\.0\.0 needs 30 s.*set at least 30"
    )
    with pytest.raises(StartError, match=words):
        await started(embedder(folder), replica, reporter_of(board, replica))
    last = board.posts[-1]
    assert (last.phase, last.cause_kind) == (Phase.FAILED, Cause.START_FAILED)
    assert "set at least 30" in (last.cause or "")


async def test_the_end_of_a_failed_start_waits_until_the_board_has_its_cause(
    folder: Path, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Serve ends the process at once: a post that merely leaves in the background may be lost."""
    confirmed: list[ReplicaReport] = []
    monkeypatch.setattr(board, "confirm_blocking", lambda report, _: confirmed.append(report))
    replica: Any = Replica()
    replica.app = "another@1.0.0"
    with pytest.raises(StartError, match="name the app after the artifact"):
        await started(embedder(folder), replica, reporter_of(board, replica))
    assert confirmed[-1].phase is Phase.FAILED


async def serving(
    folder: Path, board: Board, monkeypatch: pytest.MonkeyPatch, leave: Callable[[float], None]
) -> Embedder:
    """A whole start, by the shell's own wiring; only the end of the process is the test's."""
    monkeypatch.setattr(shell_module, "ServeReplica", Replica)
    monkeypatch.setattr(shell_module, "Board", lambda: board)
    monkeypatch.setattr(shell_module, "Vitals", functools.partial(vitals.Vitals, leave=leave))
    monkeypatch.setattr(vitals, "PERIOD_S", 0.01)
    shell = embedder(folder, watchdog=WatchdogArgs(stall_after_s=1))
    await shell.start()
    return shell


async def test_a_small_model_whose_batch_hangs_says_stalled_and_leaves(
    folder: Path, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[float] = []
    gone, go = threading.Event(), threading.Event()

    def leave(within_s: float) -> None:
        left.append(within_s)
        if within_s == 0:
            gone.set()
            threading.Event().wait()  # nothing of an ended process runs on

    shell = await serving(folder, board, monkeypatch, leave)
    envelope = shell.own_envelope(Operation.EMBED, b'{"model": "tiny@1.0.0", "input": "hello"}')
    assert isinstance(await shell.call(envelope), Item)
    await shell.check_health()
    real: Any = shell._embed

    class Hangs:
        EmbedInput = real.EmbedInput

        @staticmethod
        def embed(encoder: Any, batch: Sequence[Any]) -> Any:
            go.wait(30)
            return real.embed(encoder, batch)

    monkeypatch.setattr(shell, "_embed", Hangs)
    call = asyncio.create_task(shell.call(envelope))
    try:
        assert await asyncio.to_thread(gone.wait, 30)
    finally:
        go.set()
    await call
    assert left[0] > 0
    assert left[1] == 0
    last = next(report for report in board.posts if report.phase is Phase.FAILED)
    assert (last.cause_kind, last.live) == (Cause.STALLED, False)
    assert "without a step" in (last.cause or "")


def test_a_generators_engine_is_killed_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The workers of its core too: they hold the device's memory."""
    killed: list[str] = []

    class Process:
        def __init__(self, name: str) -> None:
            self.name = name

        def kill(self) -> None:
            killed.append(self.name)

    class Here:
        def children(self, recursive: bool = False) -> list[Process]:
            return [Process("core"), *([Process("worker")] if recursive else [])]

    shell = Generator(GeneratorArgs(artifact="file:///nowhere"))
    here: Any = Here()
    shell._processes._replica = here
    shell.kill_engine()
    assert killed == ["core", "worker"]


@pytest.mark.parametrize(
    ("device", "each"),
    [
        (Device(accelerators=2, min_memory_gb=80), 40 * 10**9),
        (Device(accelerators=1, min_memory_gb=80), 80 * 10**9),
        (Device(accelerators=0, min_memory_gb=2), 2 * 10**9),
    ],
)
def test_a_versions_memory_is_spread_over_its_accelerators(device: Device, each: int) -> None:
    manifest: Manifest = a_manifest(device=device)
    assert declared_bytes_each(manifest) == each


async def test_emulated_gpus_compute_on_the_cpu_and_are_told_all_the_same(
    folder: Path, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_EMULATED_GPUS", "1")
    replica: Any = Replica()
    replica.place, replica.gpu_ids = Place(cpus=1, gpus=1), ["0"]
    shell = embedder(folder, gpu_memory_utilization=0.5)  # of no device: CUDA is not asked
    await started(shell, replica, reporter_of(board, replica))
    assert shell.place == Place(cpus=1, gpus=0)
    last = board.posts[-1]
    assert last.ready
    assert (last.place, last.gpu_ids, last.placement_group) == ("box-d0", ("0",), "pg-1")


def test_gpus_that_are_there_are_used() -> None:
    place, home = Place(cpus=2, gpus=1), Path("/nowhere")
    assert place.as_set(Settings(home, home / "secret")) == place
    emulated = Settings(home, home / "secret", emulated_gpus=True)
    assert place.as_set(emulated) == Place(cpus=2, gpus=0)
