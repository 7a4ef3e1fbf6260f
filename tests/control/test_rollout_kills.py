"""SIGKILL around every commit of a rollout: no double step, no lost rollback, no hole in its log.

A whole life runs once to count its commits. Then it runs again for each of them, is killed right
before or right after, and another control goes on from the file and the board's word.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import pytest

from modelyard.contract.errors import InvalidRequest
from modelyard.control import keeper
from modelyard.control.journal import Journal
from modelyard.control.published import Published, newer
from modelyard.control.report import ControlReport
from modelyard.control.service import ControlService
from modelyard.control.state import State, decode
from modelyard.control.store_sqlite import SqliteStore
from modelyard.control.verbs import Command
from modelyard.rollout.outcome import OutcomeBatch
from modelyard.testing.control_world import ControlWorld, table_with_a_rollout
from modelyard.testing.scripted_evidence import ScriptedEvidence, outcome

ID = "gen-1.1.0"
BEGAN = 1_000_000.0
SECONDS = 30
OVERLAP_SECONDS = 12
FAILS_FROM = 5
PLAN: dict[str, Any] = {"steps_percent": [10, 50, 100], "hold_s": 3, "min_samples": 3}

# A human turns it back in a second in which another change is being stored, too slowly to wait for.
OVERLAP_SECOND = 4
HEAD_START_S = 0.02
SLOW_S = 0.06

Overlap = Literal["an override", "a step", "a promotion"]
Story = Literal["promoted", "rolled back"] | Overlap
WHATS: dict[Story, list[str]] = {
    "promoted": ["started", "step", "step", "step", "promoted"],
    "rolled back": ["started", "step", "step", "rolled_back"],
}


@dataclass(frozen=True)
class Kill:
    """At the commit of this number (from 1, of this process): before or after it is made."""

    commit: int
    after: bool


@dataclass
class Outside:
    """What outlives control: the board's word, the ingress's batches, the time."""

    path: Path
    story: Story
    second: int = 0
    acknowledged: int = 0
    board: Published | None = None
    words: list[Published] = field(default_factory=list)
    commits: int = 0
    done: bool = False

    def take(self, said: tuple[str, Any]) -> None:
        match said:
            case "word", word:
                self.board = newer(self.board, word)
                self.words.append(word)
            case "second", second:
                self.second = second
            case "acknowledged", number:
                self.acknowledged = number
            case "commit", commits:
                self.commits = commits
            case "done", _:
                self.done = True


class KilledStore(SqliteStore):
    def __init__(self, path: Path, kill: Kill | None, say: Connection) -> None:
        super().__init__(path)
        self._kill, self._say, self._commits = kill, say, 0
        self.slow_s = 0.0

    async def write(self, key: str, data: bytes, version: str | None) -> str:
        await asyncio.sleep(self.slow_s)
        self._commits += 1
        due = self._kill is not None and self._kill.commit == self._commits
        if due and self._kill is not None and not self._kill.after:
            os.kill(os.getpid(), signal.SIGKILL)
        written = await super().write(key, data, version)
        if due:
            os.kill(os.getpid(), signal.SIGKILL)
        self._say.send(("commit", self._commits))
        return written


async def live(outside: Outside, kill: Kill | None, say: Connection) -> None:
    """One control's life, from the second at which the last one died."""
    world = ControlWorld(board=outside.board, record=table_with_a_rollout(**PLAN))
    world.now = BEGAN + outside.second

    async def publish(word: Published) -> Published:
        held = await world.publish(word)
        say.send(("word", word))
        return held

    store = KilledStore(outside.path, kill, say)
    journal = Journal(store, f"mark-{os.getpid()}")
    wall = lambda: world.now  # noqa: E731
    control = ControlService(journal, publish, wall, wall, ScriptedEvidence)
    control.adopt(world.record)
    await control.start(outside.board)
    acknowledged = outside.acknowledged
    seconds = SECONDS if outside.story in WHATS else OVERLAP_SECONDS
    for second in range(outside.second, seconds):
        world.now = BEGAN + second
        say.send(("second", second))
        if second >= 1:
            asked = {"rollout": ID, "reason": "a release"}
            await control.admin(Command("start_rollout", asked, "ops-1", "start"))
        due = range(acknowledged + 1, second + 1)
        batches = tuple(batch_of(number, outside.story) for number in due)
        reply = await control.exchange(ControlReport("i-1", outcomes=batches))
        acknowledged = reply.outcomes_taken
        say.send(("acknowledged", acknowledged))
        if second == OVERLAP_SECOND and outside.story not in WHATS:
            store.slow_s = SLOW_S
            await overlapping(control, outside.story, lambda: control.tick(world.reading()))
            store.slow_s = 0.0
        await control.tick(world.reading())
    await control.close()
    say.send(("done", None))


async def overlapping(
    control: ControlService, story: Story, tick: Callable[[], Awaitable[None]]
) -> None:
    """The other change first, so that its write is the one under way; neither may fail but for the
    other's sake."""
    keeper.HEAD_START_S = HEAD_START_S  # type: ignore[misc]
    asked = {"rollout": ID, "reason": "a release"}
    wanted = {"kind": "floor", "target": "gen@1.0.0", "value": 2.0, "expires_in_s": 3600.0}
    match story:
        case "an override":
            add = Command("add_override", wanted | {"reason": "x"}, "ops-1", "override")
            other: Awaitable[object] = control.admin(add)
        case "a promotion":
            other = control.admin(Command("promote_rollout", asked, "ops-2", "promotion"))
        case _:
            other = tick()
    changing = asyncio.ensure_future(other)
    await asyncio.sleep(0.005)
    answer = await control.admin(Command("rollback_rollout", asked, "ops-1", "rollback"))
    assert (answer["phase"], answer["percent"]) == ("RolledBack", 0)
    try:
        await changing
    except InvalidRequest as error:
        assert error.reason == "finished"  # noqa: PT017  the rollback was first


def batch_of(second: int, story: Story) -> OutcomeBatch:
    """The canary answers two requests a second; the bad one fails from a second on."""
    failed = story == "rolled back" and second >= FAILS_FROM
    return OutcomeBatch(second, (outcome(ID, failed=failed),) * 2)


def run(outside: Outside, kill: Kill | None) -> int | None:
    """In a process of its own; its exit code, negative for the signal that ended it."""
    context = multiprocessing.get_context("fork")
    hears, says = context.Pipe(duplex=False)

    def child() -> None:
        hears.close()
        asyncio.run(live(outside, kill, says))

    process = context.Process(target=child)
    process.start()
    says.close()
    for said in heard(hears):
        outside.take(said)
    process.join()
    return process.exitcode


def heard(hears: Connection) -> Iterator[tuple[str, Any]]:
    while True:
        try:
            yield hears.recv()
        except EOFError:
            return


def state_in(path: Path) -> State:
    async def read() -> State:
        store = SqliteStore(path)
        row = await store.read("state")
        await store.close()
        assert row is not None
        return decode(row.data.partition(b"\n")[2])

    return asyncio.run(read())


def lived(path: Path, story: Story, *kills: Kill) -> Outside:
    """A life, and after each kill the rest of it under another control."""
    outside = Outside(path, story)
    for kill in kills:
        assert run(outside, kill) == -signal.SIGKILL
    assert run(outside, None) == 0
    assert outside.done
    return outside


def check(outside: Outside) -> None:
    state = state_in(outside.path)
    record = state.rollouts[ID]
    if outside.story not in WHATS:
        return check_overlap(outside, state)
    assert [one.what for one in record.history] == WHATS[outside.story]
    assert [one.number for one in record.history] == list(range(1, len(record.history) + 1))
    percent = 100 if outside.story == "promoted" else 0
    assert (state.weights[ID].percent, state.weights[ID].finished) == (percent, True)
    assert state.held == ""
    weights = [word.weight(ID) for word in outside.words if word.weight(ID) is not None]
    steps = [one for number, one in enumerate(weights) if number == 0 or one != weights[number - 1]]
    whole = [0, 10, 50, 100] if outside.story == "promoted" else [0, 10, 50, 0]
    assert [one for one in steps if one is not None] == whole
    orders = [word.order for word in outside.words]
    assert orders == sorted(orders)


def check_overlap(outside: Outside, state: State) -> None:
    record = state.rollouts[ID]
    whats = [one.what for one in record.history]
    assert whats[:2] == ["started", "step"]
    assert whats[-1] in ("rolled_back", "restored")
    assert set(whats[2:-1]) <= {"step", "promoted"}
    assert [one.number for one in record.history] == list(range(1, len(whats) + 1))
    assert (state.weights[ID].percent, state.weights[ID].finished, state.held) == (0, True, "")
    if outside.story == "an override":
        assert [one.kind for one in state.overrides] == ["floor"]
    weights = [word.weight(ID) for word in outside.words]
    ended = next(
        n for n, word in enumerate(outside.words) if word.weight(ID) == 0 and word.finished
    )
    assert set(weights[ended:]) == {0}
    orders = [word.order for word in outside.words]
    assert orders == sorted(orders)
    said = {word.order: (word.weights, word.finished) for word in outside.words}
    assert all(said[word.order] == (word.weights, word.finished) for word in outside.words)


def killed_everywhere(tmp_path: Path, story: Story, *first: Kill) -> int:
    """Kill the control that comes after those of `first` at each of its commits; how often."""
    whole = lived(tmp_path / "whole.sqlite", story, *first)
    check(whole)
    numbers = range(1, whole.commits + 1)
    kills = [Kill(number, after) for number in numbers for after in (False, True)]
    for turn, kill in enumerate(kills):
        outside = lived(tmp_path / f"{turn}.sqlite", story, *first, kill)
        try:
            check(outside)
        except AssertionError as error:
            raise AssertionError(f"killed at {kill}: {error}") from error
    return len(kills)


@pytest.mark.parametrize("story", ["promoted", "rolled back"])
def test_a_kill_around_any_commit_neither_doubles_a_step_nor_loses_a_rollback(
    tmp_path: Path, story: Story
) -> None:
    # Of the commits, those that move the rollout are a part: table, evidence and usage are others.
    assert killed_everywhere(tmp_path, story) >= 2 * (len(WHATS[story]) + 3)


@pytest.mark.parametrize("story", ["promoted", "rolled back"])
def test_nor_does_a_second_kill_while_the_next_control_takes_over_and_goes_on(
    tmp_path: Path, story: Story
) -> None:
    assert killed_everywhere(tmp_path, story, Kill(5, after=True)) >= 8


@pytest.mark.parametrize("story", ["an override", "a step", "a promotion"])
def test_nor_does_a_kill_while_a_rollback_overlaps_another_change(
    tmp_path: Path, story: Overlap
) -> None:
    assert killed_everywhere(tmp_path, story) >= 8
