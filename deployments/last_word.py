"""How a replica leaves for good: the fleet is told, the engine is killed, the process ends."""

from __future__ import annotations

import faulthandler
import logging
import os
from collections.abc import Callable
from typing import Final

from modelyard.lifecycle.cause import Cause

log = logging.getLogger("modelyard.shell")

LEAVE_WITHIN_S: Final = 6.0


def leave_within(seconds: float) -> None:
    """End this process, now or later; later it also writes where every thread was.

    By faulthandler, whose own thread needs no interpreter lock.
    """
    if seconds <= 0:
        os._exit(1)
    faulthandler.dump_traceback_later(seconds, exit=True)


def go(
    cause: Cause,
    text: str,
    tell: Callable[[Cause, str], None],
    kill_engine: Callable[[], None],
    leave: Callable[[float], None],
) -> None:
    """For a thread beside the loop. tell: post Failed, bounded; may raise. kill_engine: ends the
    engine's processes, which would outlive this one with their memory. leave: ends this process
    within so many seconds, 0 for at once."""
    leave(LEAVE_WITHIN_S)  # whatever hangs below, a lock of the log's among it
    try:
        # First: a dead engine makes the loop end this process at once, without a cause.
        tell(cause, text)
    except Exception as error:  # noqa: BLE001  it leaves in any case, and its silence is counted
        log.warning("the board was not told: %r", error)
    try:
        kill_engine()
        log.critical("this replica leaves, %s: %s", cause, text)
    finally:
        leave(0)
