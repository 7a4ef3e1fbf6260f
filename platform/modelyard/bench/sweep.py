"""From rate to rate until the server no longer keeps up."""

from __future__ import annotations

import asyncio
import platform
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Protocol

import psutil

from modelyard import __version__
from modelyard.bench.group_record import GroupRecord, TimelineRecord
from modelyard.bench.recorder import Recorder
from modelyard.bench.result import (
    NO_WINDOW_S,
    SCHEMA,
    Level,
    Options,
    Result,
    highest_held,
    knee_of,
)
from modelyard.bench.retry import Retry
from modelyard.bench.runner import Progress, Runner, Sender
from modelyard.workload.mix import Workload
from modelyard.workload.plan import plan
from modelyard.workload.trace import Traces

# Shorter than any wait that a reader would see, and no load.
PROGRESS_S: Final = 0.25


class Watcher(Protocol):
    def level(self, rate_per_s: float, duration_s: float) -> AbstractContextManager[None]:
        """Around one rate."""
        ...

    def update(self, progress: Progress) -> None: ...


class Sweep:
    """`stop` ends it with what was measured so far."""

    def __init__(
        self,
        workload: Workload,
        traces: Traces,
        options: Options,
        sender: Sender,
        watcher: Watcher,
        *,
        now: Callable[[], float],
    ) -> None:
        self._workload = workload
        self._traces = traces
        self._options = options
        self._sender = sender
        self._watcher = watcher
        self._now = now
        self._retry = Retry(options.retry, options.max_attempts)
        self._runner: Runner | None = None
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        if self._runner is not None:
            self._runner.stop()

    async def run(self) -> Result:
        """Each rate in turn, the first that does not hold is the last, unless all are wanted."""
        levels: list[Level] = []
        for rate_per_s in self._options.rates_per_s:
            levels.append(await self._level(rate_per_s))
            held = levels[-1].held(self._options.goodput_percent)
            if self._stopped or not (held or self._options.all_rates):
                break
        return Result(
            schema_=SCHEMA,
            modelyard=__version__,
            python=platform.python_version(),
            machine=f"{psutil.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            options=self._options,
            workload=self._workload,
            traces={name: trace.sha256 for name, trace in self._traces.items()},
            levels=tuple(levels),
            runs=(secrets.token_hex(8),),
            knee_per_s=knee_of(tuple(levels), self._options.goodput_percent),
            highest_held_per_s=highest_held(tuple(levels), self._options.goodput_percent),
        )

    async def _level(self, rate_per_s: float) -> Level:
        options = self._options
        workload = self._workload.at(rate_per_s, self._traces)
        recorder = Recorder(workload, warmup_s=options.warmup_s, duration_s=options.duration_s)
        self._runner = runner = Runner(
            self._sender, recorder, now=self._now, retry=self._retry, seed=workload.seed
        )
        began, cpu_s, unix_s = self._now(), time.process_time(), time.time()
        with self._watcher.level(rate_per_s, options.duration_s):
            telling = asyncio.ensure_future(self._tell(runner.progress))
            try:
                requests = plan(workload, self._traces, options.duration_s)
                await runner.run(requests, closed_loop_users=options.closed_loop_users)
            finally:
                telling.cancel()
        took_s = max(self._now() - began, 1e-9)
        measured_s = min(options.duration_s, took_s) if self._stopped else options.duration_s
        return Level(
            rate_per_s=rate_per_s,
            started_unix_s=unix_s,
            window_s=max(measured_s - options.warmup_s, NO_WINDOW_S),
            drained_s=took_s,
            interrupted=self._stopped,
            cpu_cores=(time.process_time() - cpu_s) / took_s,
            total=GroupRecord.of(recorder.total),
            streams={name: GroupRecord.of(one) for name, one in recorder.streams.items()},
            timeline=TimelineRecord.of(recorder.timeline),
        )

    async def _tell(self, progress: Progress) -> None:
        while True:
            self._watcher.update(progress)
            await asyncio.sleep(PROGRESS_S)
