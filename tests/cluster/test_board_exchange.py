"""The board, called in this process: what ingresses exchange over it and what control publishes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import board
from cluster.board import FORGET_AFTER_S, BoardActor
from modelyard.control.ingress_post import IngressPost, Wish
from modelyard.control.published import Override, Published
from modelyard.control.reading import Decided
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport

REPORT = ReplicaReport("gen@1.0.0", "r-1", "node-a", 41, Phase.READY, 2.0)
ONE = IngressPost("i-1", "digest", True, in_flight=(("gen@1.0.0", 3),))
TWO = replace(ONE, ingress="i-2", waiting=(("gen@1.0.0", "batch", 2),))
FREEZE = Override("freeze", "gen@1.0.0", None, "ops-1", "a release", 10.0)


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(board, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


async def test_an_ingress_reads_every_replica_and_ingress_with_ages(clock: Clock) -> None:
    actor = BoardActor()
    await actor.post(REPORT)
    clock.now_s += 1
    await actor.exchange(ONE)
    clock.now_s += 2
    reading = await actor.exchange(TWO)
    assert reading.posts == (Post(REPORT, 3.0),)
    assert [(entry.post, entry.age_s) for entry in reading.ingresses] == [(ONE, 2.0), (TWO, 0.0)]
    assert reading.up_s == 3.0


async def test_a_reader_without_a_post_is_no_ingress(clock: Clock) -> None:
    actor = BoardActor()
    reading = await actor.read_all()
    assert (reading.ingresses, reading.published, reading.published_age_s) == ((), None, None)


async def test_a_silent_ingress_is_forgotten(clock: Clock) -> None:
    actor = BoardActor()
    await actor.exchange(ONE)
    clock.now_s += FORGET_AFTER_S - 1
    assert len((await actor.read_all()).ingresses) == 1
    clock.now_s += 1
    assert (await actor.read_all()).ingresses == ()


async def test_the_largest_wish_for_a_version_counts_and_only_while_it_lasts(clock: Clock) -> None:
    actor = BoardActor()
    await actor.exchange(replace(ONE, wishes=(Wish("gen@1.0.0", 1, 30.0), Wish("a@1", 1, 9.0))))
    clock.now_s += 1
    wishes = (Wish("gen@1.0.0", 2, 5.0),)
    reading = await actor.exchange(replace(TWO, wishes=wishes))
    assert reading.wishes == (Wish("a@1", 1, 8.0), Wish("gen@1.0.0", 2, 5.0))
    clock.now_s += 5
    assert (await actor.read_all()).wishes == (Wish("a@1", 1, 3.0), Wish("gen@1.0.0", 1, 24.0))
    clock.now_s += 24
    assert (await actor.read_all()).wishes == ()


async def test_what_is_published_is_read_with_its_age(clock: Clock) -> None:
    actor = BoardActor()
    word = Published(3, 7, (("r-1", 25.0),), frozenset({"k"}))
    assert await actor.publish(word) == word
    clock.now_s += 2
    reading = await actor.exchange(ONE)
    assert (reading.published, reading.published_age_s) == (word, 2.0)


async def test_an_override_ends_on_time_without_control(clock: Clock) -> None:
    actor = BoardActor()
    await actor.publish(Published(1, 1, overrides=(FREEZE,)))
    clock.now_s += 9
    held = (await actor.read_all()).published
    assert held is not None
    assert held.overrides == (replace(FREEZE, left_s=1.0),)
    clock.now_s += 1
    held = (await actor.read_all()).published
    assert held is not None
    assert held.overrides == ()


async def test_an_older_control_learns_that_it_was_succeeded(clock: Clock) -> None:
    actor = BoardActor()
    await actor.publish(Published(2, 1))
    assert await actor.publish(Published(1, 99)) == Published(2, 1)
    assert (await actor.read_all()).published == Published(2, 1)


async def test_the_same_revision_again_renews_it(clock: Clock) -> None:
    actor = BoardActor()
    await actor.publish(Published(1, 1, overrides=(FREEZE,)))
    clock.now_s += 4
    await actor.publish(Published(1, 1, overrides=(replace(FREEZE, left_s=6.0),)))
    reading = await actor.read_all()
    assert reading.published_age_s == 0.0
    assert reading.published is not None
    assert reading.published.overrides == (replace(FREEZE, left_s=6.0),)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=12))
async def test_in_whatever_order_they_come_the_latest_word_stays(
    orders: list[tuple[int, int]],
) -> None:
    actor = BoardActor()
    for epoch, revision in orders:
        await actor.publish(Published(epoch, revision))
    held = (await actor.read_all()).published
    assert held is not None
    assert held.order == max(orders)


async def test_the_scaling_decisions_are_the_last_list_and_age(clock: Clock) -> None:
    actor = BoardActor()
    assert (await actor.read_all()).decisions == ()
    await actor.decided((Decided("gen@1.0.0", 3, "load"), Decided("old@1", 1, "idle")))
    await actor.decided((Decided("gen@1.0.0", 2, "load", 0.5),))
    clock.now_s += 4
    assert (await actor.read_all()).decisions == (Decided("gen@1.0.0", 2, "load", 4.5),)


async def test_a_board_that_lost_its_memory_learns_controls_word_from_an_ingress(
    clock: Clock,
) -> None:
    actor = BoardActor()
    word = Published(5, 5, revoked=frozenset({"k"}))
    await actor.exchange(replace(ONE, word=word))
    reading = await actor.exchange(TWO)
    assert reading.published is not None
    assert reading.published.order == (5, 5)
    assert await actor.publish(Published(1, 2)) == reading.published, "that control is fenced"
    assert [entry.post for entry in reading.ingresses] == [ONE, TWO]


async def test_a_board_keeps_its_later_word(clock: Clock) -> None:
    actor = BoardActor()
    await actor.publish(Published(6, 1))
    reading = await actor.exchange(replace(ONE, word=Published(5, 5)))
    assert reading.published is not None
    assert reading.published.order == (6, 1)
