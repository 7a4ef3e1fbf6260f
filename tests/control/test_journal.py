"""Epochs: one control owns the store, and an older one cannot write."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.control.journal import Fenced, Journal
from modelyard.control.store import Row, StoreFailed
from modelyard.testing.virtual_time import run_virtual


class Rows:
    """A store in memory; `lost`: the next write is done and its answer is not heard."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.count = 0
        self.lost = False

    async def read(self, key: str) -> Row | None:
        await asyncio.sleep(0)
        return self.rows.get(key)

    async def write(self, key: str, data: bytes, version: str | None) -> str:
        from modelyard.control.store import Raced

        await asyncio.sleep(0)
        held = self.rows.get(key)
        if (None if held is None else held.version) != version:
            raise Raced(key)
        self.count += 1
        self.rows[key] = Row(data, str(self.count))
        if self.lost:
            self.lost = False
            raise StoreFailed("no answer")
        return str(self.count)

    async def close(self) -> None: ...


def next_epoch(body: bytes | None) -> tuple[int, bytes]:
    epoch = int(body or b"0") + 1
    return epoch, str(epoch).encode()


async def taken(rows: Rows, mark: str) -> Journal:
    journal = Journal(rows, mark)
    await journal.take("state", next_epoch)
    return journal


async def test_each_start_has_the_next_epoch() -> None:
    rows = Rows()
    assert [(await taken(rows, str(n))).epoch for n in range(3)] == [1, 2, 3]


async def test_an_older_control_is_refused_and_stays_refused() -> None:
    rows = Rows()
    old = await taken(rows, "old")
    await old.write("table", b"old")
    new = await taken(rows, "new")
    assert await new.claim("table") == b"old"
    for _ in range(2):
        for key in ("state", "table"):
            with pytest.raises(Fenced):
                await old.write(key, b"late")
    assert old.fenced
    assert not await old.owns("state")
    assert await new.owns("state")
    assert rows.rows["table"].data == b"2 new\nold"


async def test_an_older_write_between_the_epoch_and_the_claim_is_kept_and_the_last_of_it() -> None:
    rows = Rows()
    old = await taken(rows, "old")
    await old.write("table", b"one")
    new = await taken(rows, "new")
    await old.write("table", b"two")
    assert await new.claim("table") == b"two"
    with pytest.raises(Fenced):
        await old.write("table", b"three")


async def test_a_write_whose_answer_was_lost_is_recognised() -> None:
    rows = Rows()
    journal = await taken(rows, "one")
    rows.lost = True
    with pytest.raises(StoreFailed):
        await journal.write("table", b"a")
    await journal.write("table", b"b")
    assert rows.rows["table"].data == b"1 one\nb"


async def test_a_store_that_vanished_is_written_anew() -> None:
    rows = Rows()
    journal = await taken(rows, "one")
    rows.rows.clear()
    await journal.write("state", b"1")
    assert await journal.owns("state")


async def test_two_controls_with_one_epoch_know_each_other_apart() -> None:
    """A store that was lost while its control could not be seen gives its epoch twice."""
    rows = Rows()
    first = await taken(rows, "first")
    rows.rows.clear()
    second = await taken(rows, "second")
    assert first.epoch == second.epoch
    with pytest.raises(Fenced):
        await first.write("state", b"late")


async def test_a_row_of_something_else_is_not_overwritten() -> None:
    rows = Rows()
    await rows.write("state", b"someone else's", None)
    with pytest.raises(StoreFailed, match="did not write"):
        await taken(rows, "one")
    assert rows.rows["state"].data == b"someone else's"


def test_a_store_that_hangs_is_given_up() -> None:
    class Hanging(Rows):
        async def read(self, key: str) -> Row | None:
            await asyncio.sleep(3600)
            return None

    async def go() -> None:
        with pytest.raises(StoreFailed, match="took over 5 s"):
            await taken(Hanging(), "one")
        assert asyncio.get_running_loop().time() == 5.0

    run_virtual(go())


@settings(max_examples=60)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=14))
async def test_of_controls_that_race_one_can_write_and_it_has_the_highest_epoch(
    steps: list[int],
) -> None:
    """Each step one of three starts (anew) or writes, all of them at once with the next."""
    rows = Rows()
    journals: list[Journal] = []

    async def act(step: int) -> None:
        if step == 0 or not journals:
            journal = Journal(rows, f"mark-{len(journals)}-{id(object())}")
            await journal.take("state", next_epoch)
            journals.append(journal)
            return
        journal = journals[-step % len(journals)]
        try:
            await journal.write("state", str(journal.epoch).encode())
        except Fenced:
            assert journal.epoch < max(one.epoch for one in journals)

    for one, two in zip(steps[::2], [*steps[1::2], 0], strict=False):
        await asyncio.gather(act(one), act(two))
    epochs = [journal.epoch for journal in journals]
    assert len(set(epochs)) == len(epochs)
    writers = [journal for journal in journals if await journal.owns("state")]
    assert [journal.epoch for journal in writers] == [max(epochs)]
