"""What a replica does each second beside its work: it asks whether it still makes progress.

On a thread of its own, since what it watches may be the loop. A replica that is stalled leaves by
itself: its callers' streams break at once (and are sent elsewhere where nothing was emitted yet),
and Serve replaces a dead actor within a second, but one that only fails its health check after
three of them, and then waits out its grace period for work that will never end.

Its accelerators are looked at on another thread: a call into the driver of a card that fell off its
bus may never return, and that is when the watchdog is wanted most.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from deployments.last_word import go, leave_within
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.drain import DrainOrder
from modelyard.lifecycle.watchdog import PERIOD_S, Evidence, Watchdog

log = logging.getLogger("modelyard.vitals")

# Far more than a look takes under any load; then whatever it hangs in watches nobody.
TURN_WITHIN_S: Final = 15.0


class Faults(Protocol):
    """Accelerators, as modelyard.telemetry.device_metrics.Devices has them."""

    def look(self) -> None: ...
    @property
    def fault(self) -> str | None: ...


class Vitals:
    """One per replica, from the moment it is ready.

    evidence: what is known of its progress now. tell: post Failed with this cause and text, from a
    thread, bounded; may raise. kill_engine: ends the engine's processes. devices: the accelerators,
    None where there are none. leave: ends this process within so many seconds, 0 for at once.
    """

    def __init__(
        self,
        watchdog: Watchdog,
        evidence: Callable[[], Evidence],
        tell: Callable[[Cause, str], None],
        kill_engine: Callable[[], None] = lambda: None,
        devices: Faults | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        leave: Callable[[float], None] = leave_within,
    ) -> None:
        self._watchdog = watchdog
        self._evidence = evidence
        self._tell = tell
        self._kill_engine = kill_engine
        self._devices = devices
        self._now = now
        self._leave = leave
        self._thread = threading.Thread(target=self._run, name="vitals", daemon=True)
        self._turned_at = now()
        self._stalled = False
        self._order: DrainOrder | None = None

    @property
    def stall_after_s(self) -> float:
        """How long this replica may be busy without a step."""
        return self._watchdog.allowance_s

    def start(self) -> None:
        log.info("stalled when busy for %.1f s without a step", self.stall_after_s)
        self._turned_at = self._now()
        self._thread.start()
        if self._devices is not None:
            look = self._devices.look
            threading.Thread(
                target=_each_second, args=(look, "its devices"), name="devices", daemon=True
            ).start()

    def obey(self, order: DrainOrder | None) -> None:
        """Take the board's answer to a post. An order holds for good: who took it is on its way."""
        if order is not None and self._order is None:
            log.warning("this replica is %s", order)
            self._order = order

    @property
    def cause(self) -> Cause | None:
        """For this replica's posts: Cause.DRAINED once it was ordered to leave."""
        return None if self._order is None else Cause.DRAINED

    @property
    def words(self) -> str | None:
        """What whoever looks at this replica must know though it serves: that it was told to
        leave, or that its device wants repair."""
        if self._order is not None:
            return str(self._order)
        fault = None if self._devices is None else self._devices.fault
        return None if fault is None else f"{fault}: the node wants repair"

    def check(self) -> None:
        """For check_health. Raises when Serve must take this replica out of routing; it then lets
        it finish what it holds."""
        if self._order is not None:
            raise RuntimeError(str(self._order))
        if not self._thread.is_alive():
            raise RuntimeError("the watchdog of this replica has died")
        if (silent_s := self._now() - self._turned_at) > TURN_WITHIN_S:
            raise RuntimeError(f"the watchdog of this replica has hung for {silent_s:.0f} s")

    @property
    def live(self) -> bool:
        """For this replica's posts: whether it makes progress, and somebody looks whether."""
        return not self._stalled and self._now() - self._turned_at <= TURN_WITHIN_S

    def turn(self) -> None:
        """One look. Leaves this process when it is stalled."""
        stalled = self._watchdog.check(self._now(), self._evidence())
        self._turned_at = self._now()
        if stalled is None:
            return
        self._stalled = True
        fault = None if self._devices is None else self._devices.fault
        if fault is None:
            self._go(Cause.STALLED, stalled)
        else:
            # A restart seldom mends a device: whoever repairs nodes has to see which one it is.
            self._go(Cause.DEVICE_FAULT, f"{stalled}, and {fault}: the node wants repair")

    def _go(self, cause: Cause, text: str) -> None:
        go(cause, text, self._tell, self._kill_engine, self._leave)

    def _run(self) -> None:
        _each_second(self.turn, "this replica")


def _each_second(look: Callable[[], None], at: str) -> None:
    while True:
        time.sleep(PERIOD_S)
        try:
            look()
        except Exception:
            # The edge of a background thread: without it nobody watches.
            log.exception("a look at %s failed", at)


def thread_cpu_s(thread: int | None) -> float | None:
    """CPU seconds of a live thread of this process, by its ident; None before it is known.

    Of the thread and not of the process: the loop beside it burns too, whatever the batch does.
    """
    if thread is None:
        return None
    return time.clock_gettime(time.pthread_getcpuclockid(thread))
