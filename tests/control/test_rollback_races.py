"""A rollback and another change at once: who wins, what is answered, what is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from modelyard.contract.errors import InvalidRequest, RequestError
from modelyard.control.keeper import HEAD_START_S
from modelyard.control.published import Published, newer
from modelyard.control.service import ControlService
from modelyard.control.state import State, decode
from modelyard.control.verbs import Command
from modelyard.testing.control_world import ControlWorld, MemoryStore, table_with_a_rollout

Make = Callable[..., Command]
ID = "gen-1.1.0"
PLAN: dict[str, Any] = {"steps_percent": [10, 50, 100], "hold_s": 60, "min_samples": 5}


class SlowStore(MemoryStore):
    """Takes its time for each write of the state while `slow_s` is set; notes each revision."""

    slow_s = 0.0

    async def write(self, key: str, data: bytes, version: str | None) -> str:
        if key == "state" and self.slow_s:
            await asyncio.sleep(self.slow_s)
        return await super().write(key, data, version)


class Race:
    """One control at the first weight, and every word that it published."""

    def __init__(self, world: ControlWorld, store: SlowStore, command: Make) -> None:
        self.world, self.store, self.command = world, store, command
        self.words: list[Published] = []

    async def begin(self) -> Race:
        publish = self.world.publish

        async def noted(word: Published) -> Published:
            self.words.append(word)
            return await publish(word)

        self.world.publish = noted  # type: ignore[method-assign]
        self.control: ControlService = await self.world.started()
        await self.do("start")
        await self.world.report(self.control)
        await self.control.tick(self.world.reading())
        assert self.world.word.weight(ID) == 10
        return self

    async def do(self, verb: str) -> dict[str, Any]:
        asked = self.command(f"{verb}_rollout", rollout=ID, reason="because")
        return await self.control.admin(asked)

    def stored(self) -> State:
        return decode(self.store.rows["state"][0].partition(b"\n")[2])

    def whats(self) -> list[str]:
        return [one.what for one in self.stored().rollouts[ID].history]

    def check(self) -> None:
        """No revision carries two words, the last of them is the store's, and no decision went."""
        said: dict[tuple[int, int], tuple[Any, ...]] = {}
        for word in self.words:
            content = word.weights, word.finished, word.revoked
            assert said.setdefault(word.order, content) == content
        orders = [word.order for word in self.words]
        assert orders == sorted(orders)
        numbers = [one.number for one in self.stored().rollouts[ID].history]
        assert numbers == list(range(1, len(numbers) + 1))
        weight = self.stored().weights[ID]
        assert (weight.percent, weight.finished) == (0, True)
        assert self.world.word.weight(ID) == 0
        assert self.world.word.finished == {ID}


@pytest.fixture
async def race(command: Make) -> Race:
    store = SlowStore()
    world = ControlWorld(store=store, record=table_with_a_rollout(**PLAN))
    return await Race(world, store, command).begin()


@pytest.mark.parametrize("slow_s", [0.05, HEAD_START_S + 0.1])
@pytest.mark.parametrize("order", [("promote", "rollback"), ("rollback", "promote")])
async def test_a_rollback_beats_a_promotion_of_the_same_moment_and_both_answers_are_true(
    race: Race, order: tuple[str, str], slow_s: float
) -> None:
    race.store.slow_s = slow_s
    verbs = [asyncio.create_task(race.do(verb)) for verb in order]
    answers = dict(zip(order, await asyncio.gather(*verbs, return_exceptions=True), strict=True))
    rollback, promoted = answers["rollback"], answers["promote"]
    assert isinstance(rollback, dict)
    assert (rollback["phase"], rollback["percent"]) == ("RolledBack", 0)
    race.store.slow_s = 0
    await race.control.tick(race.world.reading())
    race.check()
    if isinstance(promoted, InvalidRequest):
        assert promoted.reason == "finished"
    else:  # it was first, and was turned back since, or while it was being stored
        assert isinstance(promoted, dict)
        was_told = any(word.weight(ID) == 100 for word in race.words)
        assert promoted["phase"] == ("Promoted" if was_told else "RolledBack")
        assert race.whats() == ["started", "step", "promoted", "rolled_back"]


async def test_once_a_rollback_is_told_no_word_has_another_weight(race: Race) -> None:
    race.store.slow_s = HEAD_START_S + 0.3
    promoting = asyncio.create_task(race.do("promote"))
    await asyncio.sleep(0)
    answer = await race.do("rollback")
    assert (answer["published"], answer["stored"]) == (True, False)
    told = len(race.words)
    assert race.words[-1].weight(ID) == 0
    assert (await promoting)["phase"] == "RolledBack"
    race.store.slow_s = 0
    await race.control.tick(race.world.reading())
    assert {word.weight(ID) for word in race.words[told:]} == {0}
    race.check()


async def test_a_pause_that_was_stored_meanwhile_stays_in_the_log(race: Race) -> None:
    race.store.slow_s = 0.05
    pausing = asyncio.create_task(race.do("pause"))
    await asyncio.sleep(0)
    await race.do("rollback")
    await pausing
    assert race.whats() == ["started", "step", "paused", "rolled_back"]
    race.check()


@pytest.mark.parametrize("commits", [True, False], ids=["after the commit", "before it"])
async def test_a_control_that_dies_with_both_under_way_has_told_a_later_word_than_it_wrote(
    race: Race, commits: bool, command: Make
) -> None:
    """The write without the rollback is committed or not; the successor has the rollback."""
    race.store.slow_s = HEAD_START_S + 0.3
    revoking = asyncio.create_task(race.control.admin(command("revoke", key="beta-1")))
    await asyncio.sleep(0)
    rolling_back = asyncio.create_task(race.do("rollback"))
    await asyncio.sleep(HEAD_START_S + 0.05)
    rows, board = dict(race.store.rows), race.world.word
    assert board.weight(ID) == 0
    if commits:
        await revoking
        state = decode(race.store.rows["state"][0].partition(b"\n")[2])
        assert not state.weights[ID].finished
        assert board.order > (state.epoch, state.revision)
        rows = dict(race.store.rows)
    for task in (revoking, rolling_back):
        task.cancel()
    await asyncio.gather(revoking, rolling_back, return_exceptions=True)
    await race.control.close()
    successor = ControlWorld(store=MemoryStore(rows, writes=99), board=board)
    await successor.started()
    state = decode(successor.store.rows["state"][0].partition(b"\n")[2])
    assert (state.weights[ID].percent, state.weights[ID].finished) == (0, True)
    assert (state.held, "beta-1" in state.revoked) == ("", commits)
    assert newer(successor.word, board) is successor.word


async def test_a_promoted_rollout_may_still_be_turned_back_and_by_no_other_word(
    race: Race,
) -> None:
    await race.do("promote")
    for verb in ("start", "pause", "approve"):
        with pytest.raises(RequestError):
            await race.do(verb)
    for percent in (0.0, 50.0):
        asked = race.command("set_weight", rollout=ID, percent=percent, reason="x")
        with pytest.raises(InvalidRequest, match="rollback"):
            await race.control.admin(asked)
    answer = await race.do("rollback")
    assert (answer["phase"], answer["percent"], answer["stored"]) == ("RolledBack", 0, True)
    race.check()
    with pytest.raises(InvalidRequest, match="another id"):
        await race.do("promote")
