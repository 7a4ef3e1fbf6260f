"""What vLLM's engine gets done, and what its processes burn."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil

from modelyard.lifecycle.progress import Progress

if TYPE_CHECKING:
    from vllm.v1.metrics.loggers import StatLoggerBase


def progress_logger(progress: Progress) -> type[StatLoggerBase]:
    """One of `stat_loggers` for AsyncLLM: a step is counted for each that the engine reports.

    vLLM adds it to its own loggers. The engine reports every step, those of a chunked prefill that
    makes no token among them; one call to `generate` may be silent for minutes meanwhile.
    """
    from vllm.v1.metrics.loggers import StatLoggerBase

    class ProgressLogger(StatLoggerBase):
        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None: ...

        def record(
            self,
            scheduler_stats: Any,
            iteration_stats: Any,
            mm_cache_stats: Any = None,
            engine_idx: int = 0,
        ) -> None:
            progress.step()

        def log_engine_initialized(self) -> None: ...

    return ProgressLogger


class EngineProcesses:
    """The processes under this one: the engine's core and its workers. Use once it has loaded."""

    def __init__(self, replica: psutil.Process | None = None) -> None:
        self._replica = replica or psutil.Process()
        self._seen: list[psutil.Process] = []

    def cpu_s(self) -> float:
        """CPU seconds that they have burned.

        They are looked up once, since an engine starts no other later: a search reads the status of
        every process of the machine.
        """
        self._seen = self._seen or self._replica.children(recursive=True)
        return sum(map(_cpu_s, self._seen))

    def kill(self) -> None:
        """SIGKILL, which a stopped process obeys too. Without it a stopped engine outlives us."""
        for process in self._replica.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)
