"""A replica's vitals: what it does when it is stalled, and what it tells Serve."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from deployments import vitals
from deployments.vitals import TURN_WITHIN_S, Vitals, thread_cpu_s
from modelyard.batching.batcher import Batcher
from modelyard.config.tunables import BatchTunables
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.drain import DrainOrder
from modelyard.lifecycle.progress import Progress
from modelyard.lifecycle.watchdog import Evidence, Watchdog


class Faulty:
    """Devices that were looked at, and what is wrong with them."""

    def __init__(self, fault: str | None) -> None:
        self._fault = fault
        self.looked = threading.Event()

    @property
    def fault(self) -> str | None:
        return self._fault

    def look(self) -> None:
        self.looked.set()


class Replica:
    """Whose clock moves a second with each look. `done` is what it did, in order."""

    def __init__(self, *, fault: str | None = None, deaf_board: bool = False) -> None:
        self.now = 0.0
        self.evidence = Evidence(0, busy=True)
        self.done: list[Any] = []
        self._deaf = deaf_board
        self.devices = Faulty(fault)
        self.vitals = Vitals(
            Watchdog(10.0),
            lambda: self.evidence,
            self.tell,
            lambda: self.done.append("killed"),
            self.devices,
            now=lambda: self.now,
            leave=lambda within_s: self.done.append(within_s),
        )

    def tell(self, cause: Cause, text: str) -> None:
        self.done.append((cause, text))
        if self._deaf:
            raise ConnectionError("no board")

    def pass_s(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.vitals.turn()


def test_a_stalled_replica_tells_why_then_kills_its_engine_and_leaves() -> None:
    replica = Replica()
    replica.pass_s(10)
    assert replica.done == []
    replica.pass_s(1)
    within_s, told, *rest = replica.done
    assert within_s > 0
    assert told == (Cause.STALLED, "busy for 10 s without a step")
    assert rest == ["killed", 0]


def test_it_leaves_even_when_the_board_is_deaf() -> None:
    replica = Replica(deaf_board=True)
    replica.pass_s(11)
    assert replica.done[2:] == ["killed", 0]


def test_a_stall_with_a_faulty_device_is_a_device_fault() -> None:
    replica = Replica(fault="GPU 0 reported XID 79")
    replica.pass_s(11)
    assert replica.done[1] == (
        Cause.DEVICE_FAULT,
        "busy for 10 s without a step, and GPU 0 reported XID 79: the node wants repair",
    )


def test_a_faulty_device_alone_ends_no_replica() -> None:
    """It may serve on for days: the node's repair decides, and the metric tells it."""
    replica = Replica(fault="GPU 0 reported XID 94")
    replica.evidence = Evidence(0, busy=False)
    replica.pass_s(60)
    assert replica.done == []
    assert replica.vitals.words == "GPU 0 reported XID 94: the node wants repair"


def test_an_order_to_drain_fails_the_health_check_for_good() -> None:
    vitals = Replica().vitals
    vitals.start()
    vitals.check()
    assert (vitals.cause, vitals.words) == (None, None)
    vitals.obey(None)
    vitals.obey(DrainOrder("ops-1", "a slow disk"))
    vitals.obey(None)
    with pytest.raises(RuntimeError, match="drained by ops-1: a slow disk"):
        vitals.check()
    assert vitals.cause is Cause.DRAINED
    assert vitals.words == "drained by ops-1: a slow disk"


def test_a_replica_that_nobody_watches_is_not_healthy() -> None:
    with pytest.raises(RuntimeError, match="the watchdog of this replica has died"):
        Replica().vitals.check()


class Hung(Faulty):
    """A driver that never comes back, as of a card that fell off its bus."""

    def look(self) -> None:
        super().look()
        threading.Event().wait()


def test_a_driver_that_hangs_does_not_keep_a_stall_from_being_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vitals, "PERIOD_S", 0.001)
    told, left = threading.Event(), threading.Event()
    devices = Hung(None)

    def leave(within_s: float) -> None:
        if within_s == 0:
            left.set()
            threading.Event().wait()  # nothing of an ended process runs on

    def evidence() -> Evidence:
        assert devices.looked.wait(30)  # it hangs by now
        return Evidence(0, busy=True)

    watched = Vitals(
        Watchdog(0.01),
        evidence,
        lambda cause, text: told.set(),
        devices=devices,
        leave=leave,
    )
    watched.start()
    assert told.wait(30)
    assert left.wait(30)
    assert not watched.live


def test_devices_are_looked_at_beside_the_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "PERIOD_S", 0.001)
    replica = Replica()
    replica.evidence = Evidence(0, busy=False)
    replica.vitals.start()
    for _ in range(3):
        replica.devices.looked.clear()
        assert replica.devices.looked.wait(30)


def test_a_watchdog_that_hangs_is_not_healthy_and_its_replica_does_not_live() -> None:
    replica = Replica()
    replica.evidence = Evidence(0, busy=False)
    replica.vitals.start()
    replica.now += TURN_WITHIN_S
    replica.vitals.check()
    assert replica.vitals.live
    replica.now += 1.0
    with pytest.raises(RuntimeError, match="the watchdog of this replica has hung for 16 s"):
        replica.vitals.check()
    assert not replica.vitals.live
    replica.vitals.turn()  # it came back
    replica.vitals.check()
    assert replica.vitals.live


def test_a_look_that_fails_each_time_watches_nobody() -> None:
    replica = Replica()
    replica.now += TURN_WITHIN_S + 1

    def broken() -> Evidence:
        raise OSError("no /proc")

    replica.vitals._evidence = broken
    with pytest.raises(OSError, match="no /proc"):
        replica.vitals.turn()
    assert not replica.vitals.live


def test_the_cpu_of_a_thread_is_its_own() -> None:
    assert thread_cpu_s(None) is None
    before = thread_cpu_s(threading.get_ident())
    assert before is not None
    until = time.thread_time() + 0.01
    while time.thread_time() < until:
        pass
    after = thread_cpu_s(threading.get_ident())
    assert after is not None
    assert after - before >= 0.01


async def test_a_batch_that_hangs_is_a_stall_and_its_slot_stays_taken_until_it_ends() -> None:
    """As a small model wires it: the batch thread sleeps, so its CPU excuses nothing."""
    started, go = threading.Event(), threading.Event()

    def compute(batch: Sequence[int]) -> list[int]:
        started.set()
        assert go.wait(timeout=30)
        return list(batch)

    replica, progress = Replica(), Progress()
    batcher = Batcher[int, int](progress.counted(compute), BatchTunables())
    hung = asyncio.create_task(batcher.submit(1, 1))
    await asyncio.to_thread(started.wait)
    hung.cancel()  # its deadline: the ingress has told its caller
    for _ in range(11):
        await asyncio.sleep(0)
        busy = bool(batcher.statistics().running)
        replica.evidence = Evidence(progress.steps, busy, thread_cpu_s(progress.thread))
        replica.pass_s(1)
    assert replica.done[1] == (Cause.STALLED, "busy for 10 s without a step")
    assert not hung.done()
    go.set()
    await asyncio.wait([hung])
    assert progress.steps == 1


def test_the_allowance_is_that_of_its_watchdog() -> None:
    assert Replica().vitals.stall_after_s == 10.0
