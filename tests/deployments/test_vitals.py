"""A replica's vitals: what it does when it is stalled, and what it tells Serve."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from deployments.vitals import Vitals, thread_cpu_s
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
        self.looks = 0

    @property
    def fault(self) -> str | None:
        return self._fault

    def look(self) -> None:
        self.looks += 1


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
    assert replica.devices.looks == 11


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
