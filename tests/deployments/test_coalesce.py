from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.coalesce import coalesced
from modelyard.contract.envelope import Item, Usage
from modelyard.testing.virtual_time import run_virtual

USAGE = Usage(3, 9)


class Source:
    """Makes items after the given pauses, and notes how it ended."""

    def __init__(self, *pauses_s: float, error: Exception | None = None) -> None:
        self._pauses_s = pauses_s
        self._error = error
        self.ended = ""

    async def items(self) -> AsyncGenerator[Item]:
        try:
            for number, pause_s in enumerate(self._pauses_s):
                if pause_s:
                    await asyncio.sleep(pause_s)
                final = USAGE if number == len(self._pauses_s) - 1 else None
                yield Item(b"%d;" % number, 1, None if self._error else final)
            if self._error:
                raise self._error
            self.ended = "complete"
        except (asyncio.CancelledError, GeneratorExit):
            self.ended = "stopped"
            raise


async def consumed(source: Source, pause_s: float = 0.0) -> list[tuple[float, Item]]:
    """Items with the time each was taken, by a consumer that needs `pause_s` for one."""
    taken = []
    async with aclosing(coalesced(source.items())) as items:
        async for item in items:
            taken.append((asyncio.get_running_loop().time(), item))
            await asyncio.sleep(pause_s)
    return taken


pauses = st.lists(st.sampled_from([0.0, 0.01, 0.5]), min_size=1, max_size=30)


@given(pauses, st.sampled_from([0.0, 0.02, 0.7]))
def test_nothing_is_lost_reordered_or_counted_twice(made_s: list[float], taken_s: float) -> None:
    items = [item for _, item in run_virtual(consumed(Source(*made_s), taken_s))]
    assert b"".join(item.data for item in items) == b"".join(
        b"%d;" % number for number in range(len(made_s))
    )
    assert sum(item.output_tokens for item in items) == len(made_s)
    assert [item.final for item in items] == [None] * (len(items) - 1) + [USAGE]


def test_a_quick_consumer_gets_each_item_when_it_is_made() -> None:
    taken = run_virtual(consumed(Source(1.0, 1.0, 1.0)))
    assert [at for at, _ in taken] == [1.0, 2.0, 3.0]


def test_a_slow_consumer_gets_what_waits_as_one() -> None:
    taken = run_virtual(consumed(Source(1.0, 1.0, 1.0, 1.0, 1.0), 2.5))
    assert [(at, item.data) for at, item in taken] == [
        (1.0, b"0;"),
        (3.5, b"1;2;"),
        (6.0, b"3;4;"),
    ]


def test_what_is_made_at_once_leaves_as_one() -> None:
    assert [item.data for _, item in run_virtual(consumed(Source(1.0, 0.0, 0.0)))] == [b"0;1;2;"]


def test_an_error_comes_after_what_was_made_before_it() -> None:
    async def main() -> None:
        items = coalesced(Source(0.0, 0.0, error=LookupError("engine")).items())
        assert (await anext(items)).data == b"0;1;"
        with pytest.raises(LookupError):
            await anext(items)

    run_virtual(main())


@pytest.mark.parametrize("after", [0, 1])
def test_closing_it_stops_the_source(after: int) -> None:
    async def main() -> None:
        source = Source(0.1, 5.0, 5.0)
        items = coalesced(source.items())
        for _ in range(after):
            await anext(items)
        await asyncio.sleep(1.0)
        await items.aclose()
        assert source.ended == ("stopped" if after else "")

    run_virtual(main())


def test_a_cancelled_consumer_stops_the_source_before_it_goes() -> None:
    async def main() -> None:
        source = Source(1.0, 5.0)
        task = asyncio.create_task(consumed(source))
        await asyncio.sleep(2.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert source.ended == "stopped"

    run_virtual(main())
