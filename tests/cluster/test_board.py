"""The board, called in this process: what it keeps, for how long, and how old it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from ray.exceptions import ActorDiedError, RayError

from cluster import board
from cluster.awake import LATE_S
from cluster.board import FORGET_AFTER_S, Board, BoardActor
from modelyard.admission.suspects import Deaths, Suspects
from modelyard.control.published import Override, Published
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.drain import DrainOrder
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport
from modelyard.lifecycle.restarts import Restart
from modelyard.lifecycle.silence import SILENT_S

REPORT = ReplicaReport("gen@1.0.0", "r-1", "node-a", 41, Phase.READY, 2.0)
OTHER = replace(REPORT, replica="r-2", pid=42)


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The board's own clock only: the event loop reads `time.monotonic` too. It was never paused,
    though a test lets a minute pass at once."""
    clock = Clock()
    monkeypatch.setattr(board, "time", SimpleNamespace(monotonic=clock.monotonic))
    awake = SimpleNamespace(now=clock.monotonic)
    monkeypatch.setattr(board, "AwakeClock", lambda now: awake)
    return clock


async def test_a_new_board_is_empty(clock: Clock) -> None:
    assert await BoardActor().read() == []


async def test_each_post_is_read_with_its_own_age(clock: Clock) -> None:
    actor = BoardActor()
    await actor.post(REPORT)
    clock.now_s += 3
    await actor.post(OTHER)
    clock.now_s += 1.5
    assert await actor.read() == [Post(REPORT, 4.5), Post(OTHER, 1.5)]


async def test_a_replicas_next_post_replaces_its_last(clock: Clock) -> None:
    actor = BoardActor()
    await actor.post(REPORT)
    clock.now_s += 5
    busy = replace(REPORT, ongoing=3)
    await actor.post(busy)
    assert await actor.read() == [Post(busy, 0.0)]


async def test_reading_does_not_renew_a_post(clock: Clock) -> None:
    actor = BoardActor()
    await actor.post(REPORT)
    clock.now_s += 100
    assert [post.age_s for post in await actor.read()] == [100.0]
    clock.now_s += FORGET_AFTER_S - 100
    assert await actor.read() == []


async def test_a_silent_replica_is_forgotten_and_the_others_are_not(clock: Clock) -> None:
    actor = BoardActor()
    await actor.post(REPORT)
    clock.now_s += FORGET_AFTER_S - 1
    await actor.post(OTHER)
    assert len(await actor.read()) == 2
    clock.now_s += 1
    assert await actor.read() == [Post(OTHER, 1.0)]


async def test_what_was_forgotten_does_not_come_back_without_a_post(clock: Clock) -> None:
    actor = BoardActor()
    await actor.post(REPORT)
    clock.now_s += FORGET_AFTER_S
    assert await actor.read() == []
    clock.now_s -= FORGET_AFTER_S
    assert await actor.read() == []


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.READY])
async def test_a_silent_replica_is_forgotten_in_whatever_phase(clock: Clock, phase: Phase) -> None:
    actor = BoardActor()
    await actor.post(replace(REPORT, phase=phase))
    clock.now_s += FORGET_AFTER_S - 1
    assert len(await actor.read()) == 1
    clock.now_s += 1
    assert await actor.read() == []


async def test_a_long_load_that_posts_each_second_is_not_forgotten(clock: Clock) -> None:
    actor, began = BoardActor(), clock.now_s
    while clock.now_s < began + FORGET_AFTER_S + SILENT_S:
        await actor.post(replace(REPORT, phase=Phase.LOADING, phase_s=clock.now_s - began))
        clock.now_s += 1
        assert len(await actor.read()) == 1
    assert (await actor.read_all()).restarts == ()


async def test_what_failed_stays_failed(clock: Clock) -> None:
    """A post of the loop may arrive after the last word of a thread."""
    actor = BoardActor()
    failed = replace(REPORT, phase=Phase.FAILED, cause="no step", cause_kind=Cause.STALLED)
    await actor.post(failed)
    clock.now_s += 1
    await actor.post(REPORT)
    assert await actor.read() == [Post(failed, 1.0)]


async def test_a_dead_board_is_looked_for_anew() -> None:
    class Dead:
        async def remote(self, *_: object) -> None:
            raise ActorDiedError

    door = Board()
    for ask in (door.read, lambda: door.confirm(REPORT)):
        door._actor = SimpleNamespace(read=Dead(), post=Dead())
        with pytest.raises(RayError):
            await ask()
        assert door._actor is None


async def test_every_ingress_learns_of_the_deaths_that_another_saw(clock: Clock) -> None:
    actor, door = BoardActor(), Board()

    class Method:
        async def remote(self, deaths: Deaths) -> Deaths:
            return await actor.share_deaths(deaths)

    door._actor = SimpleNamespace(share_deaths=Method())
    one, two = Suspects(clock.monotonic), Suspects(clock.monotonic)
    one.died("replica-1", "digest")
    await door.share_deaths(one)
    clock.now_s += 5
    await door.share_deaths(two)
    assert two.deaths() == {"replica-1": (5.0, {"digest": 1})}


def order(target: str) -> Published:
    return Published(1, 1, overrides=(Override("drain", target, None, "ops-1", "a slow disk", 60),))


async def test_a_replica_hears_its_order_in_the_answer_to_its_post(clock: Clock) -> None:
    actor = BoardActor()
    assert await actor.post(REPORT) is None
    await actor.publish(order(f"replica:{REPORT.replica}"))
    assert await actor.post(REPORT) == DrainOrder("ops-1", "a slow disk")
    assert await actor.post(OTHER) is None
    clock.now_s += 61
    assert await actor.post(REPORT) is None


async def test_a_ready_replica_that_falls_silent_is_counted_once(clock: Clock) -> None:
    actor = BoardActor()
    ready = replace(REPORT, phase=Phase.READY)
    await actor.post(ready)
    assert (await actor.read_all()).restarts == ()
    clock.now_s += SILENT_S + 1
    crashed = (Restart(ready.app, Cause.CRASHED, 1),)
    assert (await actor.read_all()).restarts == crashed
    clock.now_s += FORGET_AFTER_S
    assert (await actor.read_all()).posts == ()
    assert (await actor.read_all()).restarts == crashed


async def test_a_start_that_is_killed_is_counted_once(clock: Clock) -> None:
    actor = BoardActor()
    await actor.post(replace(REPORT, phase=Phase.LOADING))
    clock.now_s += SILENT_S
    for _ in range(2):
        assert (await actor.read_all()).restarts == (Restart(REPORT.app, Cause.START_FAILED, 1),)


async def test_a_board_that_was_paused_takes_nobody_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(board, "time", SimpleNamespace(monotonic=clock.monotonic))
    actor = BoardActor()
    await actor.post(REPORT)
    clock.now_s += 600  # its process is stopped, and posts wait
    paused = await actor.read_all()
    assert paused.restarts == ()
    assert [post.age_s for post in paused.posts] == [1.0]
    while clock.now_s < 1600 + SILENT_S:  # it runs on, and hears nothing
        clock.now_s += LATE_S - 1
        await actor.read()
    assert (await actor.read_all()).restarts == (Restart(REPORT.app, Cause.CRASHED, 1),)


async def test_a_last_word_reaches_the_board_that_succeeded_a_dead_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    took: list[ReplicaReport] = []

    def get(answer: Callable[[], None], timeout: float) -> None:
        assert timeout > 0
        answer()

    def dead() -> None:
        raise ActorDiedError

    monkeypatch.setattr("ray.get", get)
    door = Board()
    door._actor = SimpleNamespace(post=SimpleNamespace(remote=lambda report: dead))
    alive = SimpleNamespace(post=SimpleNamespace(remote=lambda report: lambda: took.append(report)))
    held = door._actor
    monkeypatch.setattr(door, "_connect", lambda: alive if door._actor is not held else held)
    door.confirm_blocking(REPORT, 2.0)
    assert took == [REPORT]


async def test_the_last_failure_outlives_its_post_and_is_no_post(clock: Clock) -> None:
    actor = BoardActor()
    failed = replace(REPORT, phase=Phase.FAILED, cause="SelfTest: no")
    await actor.post(failed)
    clock.now_s += FORGET_AFTER_S + 120
    reading = await actor.read_all()
    assert (reading.posts, reading.failures) == ((), (Post(failed, FORGET_AFTER_S + 120),))
    await actor.post(OTHER)
    assert (await actor.read_all()).failures == ()
