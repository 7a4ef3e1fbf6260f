"""Keeps a start within its budgets, also when it blocks the loop."""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from typing import Final

from deployments.reporter import Reporter
from modelyard.config.model_args import StartBudgets
from modelyard.lifecycle.budgets import over_budget
from modelyard.lifecycle.cause import Cause

log = logging.getLogger("modelyard.shell")

LOOK_EACH_S: Final = 0.25
SAID_WITHIN_S: Final = 0.5  # a post leaves in the background


class StartGuard:
    """A thread that ends this process when a phase is over its budget.

    asyncio.timeout would not do: a load holds the loop, or sits in a thread that nothing can stop.
    Only the end of the process stops either; Serve then starts another and counts the attempts.
    """

    def __init__(
        self, reporter: Reporter, budgets: StartBudgets, leave: Callable[[str], None] | None = None
    ) -> None:
        self._reporter = reporter
        self._budgets = budgets
        self._leave = leave or self._die
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="start-guard", daemon=True)

    def __enter__(self) -> StartGuard:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EACH_S):
            why = over_budget(self._reporter.phase, self._reporter.phase_s, self._budgets)
            if why is not None:
                self._leave(why)
                return

    def _die(self, why: str) -> None:
        self._reporter.fail(why, Cause.START_FAILED)
        time.sleep(SAID_WITHIN_S)
        for child in multiprocessing.active_children():
            child.kill()  # an engine process outlives us otherwise, with its memory
        log.critical("this replica leaves: %s", why)
        logging.shutdown()
        os._exit(1)
