"""The board as an ingress follows it: one half may fail, and a failure is told once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from cluster.board import Board
from deployments.follow_board import BoardStep, board_steps
from modelyard.testing.in_memory import InMemoryIngress


class EarlierBoard:
    """A detached actor that an earlier release left: it can be read and shares nothing."""

    class read:
        @staticmethod
        async def remote() -> list[Any]:
            return []


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def test_a_board_that_cannot_share_is_read_and_named_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = InMemoryIngress().pipeline
    readings: list[Any] = []
    monkeypatch.setattr(pipeline.fleet, "update", readings.append)
    board = Board()
    board._actor = EarlierBoard()
    steps = board_steps(pipeline, board)
    with caplog.at_level(logging.WARNING, "modelyard.ingress"):
        for _ in range(3):
            for step in steps:
                await step.run()
    assert readings == [[], [], []]
    [line] = messages(caplog)
    assert line.startswith("sharing deaths through the board fails")
    assert "AttributeError" in line


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
