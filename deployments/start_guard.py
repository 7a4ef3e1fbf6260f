"""Keeps a start within its budgets and in the fleet's sight, also when it blocks the loop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from deployments.last_word import go, leave_within
from deployments.reporter import POST_PERIOD_S, Reporter
from modelyard.config.model_args import StartBudgets
from modelyard.lifecycle.budgets import over_budget
from modelyard.lifecycle.cause import Cause

log = logging.getLogger("modelyard.shell")

# Serve kills a start that it stops within 0.1 s or two: seen in time, it is not taken for a crash.
LOOK_EACH_S: Final = 0.05


class StartGuard:
    """A thread that posts each second, and ends this process when a phase is over its budget.

    asyncio.timeout would not do: a load holds the loop, or sits in a thread that nothing can stop.
    Only the end of the process stops either; Serve then starts another and counts the attempts.
    """

    def __init__(
        self,
        reporter: Reporter,
        budgets: StartBudgets,
        kill_engine: Callable[[], None],
        leave: Callable[[float], None] = leave_within,
    ) -> None:
        """kill_engine and leave: as deployments.last_word has them."""
        self._reporter = reporter
        self._budgets = budgets
        self._kill_engine = kill_engine
        self._leave = leave
        self._over = threading.Event()
        self._posted_at = time.monotonic()
        self._thread = threading.Thread(target=self._watch, name="start-guard", daemon=True)

    def __enter__(self) -> StartGuard:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EACH_S):
            reporter = self._reporter
            why = over_budget(reporter.phase, reporter.phase_s, self._budgets)
            if why is not None:
                go(Cause.START_FAILED, why, reporter.tell, self._kill_engine, self._leave)
                return
            try:
                self._post()
            except Exception as error:  # noqa: BLE001  the edge of a background thread
                log.warning("the board did not take a post, the next may reach it: %r", error)

    def _post(self) -> None:
        self._reporter.notice_stop()
        if time.monotonic() - self._posted_at >= POST_PERIOD_S:
            self._posted_at = time.monotonic()
            self._reporter.confirm()
