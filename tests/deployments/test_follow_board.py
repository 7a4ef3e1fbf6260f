"""The board as an ingress follows it: one half may fail, and a failure is told once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from cluster.board import Board
from deployments.follow_board import BoardStep, FollowBoard
from modelyard.control.ingress_post import IngressPost
from modelyard.control.published import Published
from modelyard.control.reading import Reading
from modelyard.ingress.lanes import Lanes
from modelyard.ingress.pipeline import Pipeline
from modelyard.testing.in_memory import InMemoryIngress
from modelyard.testing.virtual_time import run_virtual


class Method:
    """An actor's method as Ray offers it, over a function."""

    def __init__(self, do: Callable[..., Any]) -> None:
        self._do = do

    async def remote(self, *arguments: Any) -> Any:
        return self._do(*arguments)


class EarlierBoard:
    """A detached actor that an earlier release left: it can be read, and knows nothing more."""

    read = Method(lambda: [])


class ThisBoard(EarlierBoard):
    """Keeps what it was told."""

    def __init__(self, published: Published) -> None:
        self.told: list[IngressPost] = []
        self._published = published
        self.exchange = Method(self._exchange)
        self.share_deaths = Method(lambda deaths: deaths)

    def _exchange(self, post: IngressPost) -> Reading:
        self.told.append(post)
        return Reading((), (), (), self._published, 0.0, 60.0)


def following(pipeline: Pipeline, actor: EarlierBoard) -> FollowBoard:
    board = Board()
    board._actor = actor
    return FollowBoard(pipeline, board)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def test_an_exchange_tells_the_table_and_takes_controls_word() -> None:
    pipeline = InMemoryIngress().pipeline
    board = ThisBoard(Published(1, 1, revoked=frozenset({"alpha-1"})))
    await following(pipeline, board).step()
    [post] = board.told
    assert pipeline.table is not None
    assert (post.ingress, post.table_digest) == (pipeline.ingress, pipeline.table.digest())
    assert post.table_valid
    assert pipeline.in_force.revoked == {"alpha-1"}


async def test_the_word_that_is_in_force_is_told_once_it_is() -> None:
    board = ThisBoard(Published(1, 7))
    follow = following(InMemoryIngress().pipeline, board)
    await follow.step()
    await follow.step()
    assert [post.order for post in board.told] == [(0, 0), (1, 7)]


async def test_a_refused_table_is_told() -> None:
    pipeline = InMemoryIngress().pipeline
    pipeline.refuse_table("routes: nonsense")
    board = ThisBoard(Published(1, 1))
    await following(pipeline, board).step()
    assert (board.told[0].table_valid, board.told[0].table_error) == (False, "routes: nonsense")


async def test_a_board_of_an_earlier_release_is_read_and_named_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = InMemoryIngress().pipeline
    readings: list[Any] = []
    monkeypatch.setattr(pipeline.fleet, "update", readings.append)
    follow = following(pipeline, EarlierBoard())
    with caplog.at_level(logging.WARNING, "modelyard.ingress"):
        for _ in range(4):
            await follow.step()
    assert readings == [[], [], [], []]
    exchange, share = messages(caplog)
    assert exchange.startswith("the exchange with the board fails")
    assert share.startswith("sharing deaths through the board fails")
    assert "AttributeError" in share


async def test_a_failure_is_logged_when_it_begins_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcomes: list[Exception | None] = [None, OSError("a"), OSError("b"), None, None, OSError("c")]

    async def do() -> None:
        if (outcome := outcomes.pop(0)) is not None:
            raise outcome

    step = BoardStep("reading", do)
    with caplog.at_level(logging.WARNING, "modelyard.ingress"):
        while outcomes:
            await step.run()
    assert messages(caplog) == [
        "reading fails, the last state stays: OSError('a')",
        "reading works again",
        "reading fails, the last state stays: OSError('c')",
    ]


async def exchanges_in(seconds: float, pipeline: Pipeline) -> int:
    board = ThisBoard(Published(1, 1))
    run = asyncio.create_task(following(pipeline, board).run())
    await asyncio.sleep(seconds)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    return len(board.told)


def test_the_board_is_told_five_times_a_second_and_at_once_when_somebody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        pipeline = InMemoryIngress(now=asyncio.get_running_loop().time).pipeline
        assert await exchanges_in(0.99, pipeline) == 5
        asyncio.get_running_loop().call_later(0.1, pipeline.turnstile.pressed.set)
        assert await exchanges_in(0.32, pipeline) == 3
        monkeypatch.setattr(Lanes, "is_contended", True)
        assert await exchanges_in(0.99, pipeline) == 20

    run_virtual(main())
