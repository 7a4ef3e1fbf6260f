"""What this replica tells the board of itself: each phase as it begins, then every second."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable

from cluster.board import Board
from deployments.replica import ServeReplica
from deployments.vitals import Vitals
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase, PhaseLog
from modelyard.lifecycle.report import Description, ReplicaReport

log = logging.getLogger("modelyard.shell")

POST_PERIOD_S = 1.0
POST_WITHIN_S = 3.0
TELL_S = 2.0  # the last word: Serve's replacement waits for it


class Reporter:
    """Keeps the phase and posts it. Phases may be entered from any thread.

    The lock covers a look at the phase and what follows from it, the post too: else a thread's
    Failed could be undone, or overtaken, by the phase that the loop enters meanwhile.
    """

    def __init__(self, replica: ServeReplica, board: Board, ongoing: Callable[[], int]) -> None:
        self._replica = replica
        self._board = board
        self._ongoing = ongoing
        self._log = PhaseLog(time.monotonic)
        self._cause: tuple[str | None, Cause | None] = (None, None)
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.RLock()
        self.description: Description | None = None
        self.fetched: tuple[int, int] | None = None
        self.vitals: Vitals | None = None  # from when it is ready

    @property
    def phase(self) -> Phase:
        return self._log.phase

    @property
    def phase_s(self) -> float:
        """Seconds in the present phase."""
        return self._log.phase_s

    def enter(self, phase: Phase) -> None:
        """Begin a phase and post it. What failed stays failed, and what drains never serves."""
        with self._lock:
            if self.phase in (Phase.FAILED, Phase.DRAINING):
                return
            self._log.enter(phase)
            self.post()
        log.info("%s: %s", self._who(), phase)

    def fail(self, cause: str, kind: Cause) -> None:
        """The last word: why this replica goes. The first cause stays."""
        with self._lock:
            if self.phase is Phase.FAILED:
                return
            self._cause = (cause, kind)
            self._log.enter(Phase.FAILED)
            self.post()
        log.error("%s: %s: %s", self._who(), Phase.FAILED, cause)

    def tell(self, kind: Cause, cause: str) -> None:
        """The last word from a thread, heard before this returns. Raises RayError."""
        self.fail(cause, kind)
        self._board.confirm_blocking(self.report(), TELL_S)

    def notice_stop(self) -> None:
        """Enter Draining once Serve has told this replica to stop."""
        if self._replica.draining:
            self.enter(Phase.DRAINING)

    def post(self) -> None:
        with self._lock:
            self._board.post(self.report())

    def confirm(self) -> None:
        """The same from a thread, and known to have arrived: a board that was replaced is found.
        Raises RayError."""
        self._board.confirm_blocking(self.report(), POST_WITHIN_S)

    def report(self) -> ReplicaReport:
        with self._lock:
            return self._report()

    def _report(self) -> ReplicaReport:
        cause, kind = self._cause
        if kind is None and self.vitals is not None:
            cause, kind = self.vitals.words, self.vitals.cause
        return ReplicaReport(
            app=self._replica.app,
            replica=self._replica.replica,
            node=self._replica.node,
            pid=os.getpid(),
            phase=self._log.phase,
            phase_s=self._log.phase_s,
            phases=self._log.done,
            ongoing=self._ongoing(),
            slots=self._replica.slots,
            description=self.description,
            cause=cause,
            cause_kind=kind,
            live=self.vitals is None or self.vitals.live,
            fetched=self.fetched if self._log.phase is Phase.FETCHING else None,
            stall_after_s=None if self.vitals is None else self.vitals.stall_after_s,
            place=self._replica.place_name,
            gpu_ids=tuple(self._replica.gpu_ids),
            placement_group=self._replica.placement_group,
        )

    def keep_posting(self) -> None:
        """From now on once a second, for ever: a replica that stops posting counts as gone.

        On the loop, and not on a thread: a replica whose loop hangs serves nobody.
        """
        self._task = asyncio.create_task(self._keep_posting())

    def require_posting(self) -> None:
        """Raises RuntimeError once the posts have ended, which they never should, or when an
        operator told this replica to leave."""
        if self._task is not None and self._task.done():
            raise RuntimeError("this replica has stopped posting, so no ingress sends it anything")
        if self.vitals is not None:
            self.vitals.check()

    async def _keep_posting(self) -> None:
        while True:
            await asyncio.sleep(POST_PERIOD_S)
            self.notice_stop()
            try:
                async with asyncio.timeout(POST_WITHIN_S):
                    order = await self._board.confirm(self.report())
                if self.vitals is not None:
                    self.vitals.obey(order)
            except Exception as error:  # noqa: BLE001  the edge of a background task
                log.warning("the board did not take a post, the next may reach it: %r", error)

    def _who(self) -> str:
        version = f" {self.description.fingerprint}" if self.description else ""
        return f"{self._replica.app} {self._replica.replica}{version}"
