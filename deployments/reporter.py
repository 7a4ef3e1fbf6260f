"""What this replica tells the board of itself: each phase as it begins, then every second."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable

from cluster.board import Board
from deployments.replica import ServeReplica
from deployments.vitals import TELL_S, Vitals
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase, PhaseLog
from modelyard.lifecycle.report import Description, ReplicaReport

log = logging.getLogger("modelyard.shell")

POST_PERIOD_S = 1.0
POST_WITHIN_S = 3.0


class Reporter:
    """Keeps the phase and posts it. Phases may be entered from any thread."""

    def __init__(self, replica: ServeReplica, board: Board, ongoing: Callable[[], int]) -> None:
        self._replica = replica
        self._board = board
        self._ongoing = ongoing
        self._log = PhaseLog(time.monotonic)
        self._cause: tuple[str | None, Cause | None] = (None, None)
        self._task: asyncio.Task[None] | None = None
        self.description: Description | None = None
        self.fetched: tuple[int, int] | None = None
        self.live = True
        self.vitals: Vitals | None = None  # from when it is ready

    @property
    def phase(self) -> Phase:
        return self._log.phase

    @property
    def phase_s(self) -> float:
        """Seconds in the present phase."""
        return self._log.phase_s

    def enter(self, phase: Phase) -> None:
        """Begin a phase and post it. What failed stays failed."""
        if self.phase is Phase.FAILED:
            return
        self._log.enter(phase)
        log.info("%s: %s", self._who(), phase)
        self.post()

    def fail(self, cause: str, kind: Cause) -> None:
        """The last word: why this replica goes. The first cause stays."""
        if self.phase is Phase.FAILED:
            return
        self._cause = (cause, kind)
        self._log.enter(Phase.FAILED)
        log.error("%s: %s: %s", self._who(), Phase.FAILED, cause)
        self.post()

    def tell(self, kind: Cause, cause: str) -> None:
        """The last word from a thread, heard before this returns. Raises RayError."""
        self.fail(cause, kind)
        self._board.confirm_blocking(self.report(), TELL_S)

    def post(self) -> None:
        self._board.post(self.report())

    def report(self) -> ReplicaReport:
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
            live=self.live,
            fetched=self.fetched if self._log.phase is Phase.FETCHING else None,
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
            if self.phase is Phase.READY and self._replica.draining:
                self.enter(Phase.DRAINING)
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
