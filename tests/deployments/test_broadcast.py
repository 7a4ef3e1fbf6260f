"""One call to every replica: what came in time counts, and the rest is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

from deployments.broadcast import Answers, ask_all
from modelyard.testing.virtual_time import run_virtual


class Call:
    def __init__(self, answer: Any, after_s: float = 0.0) -> None:
        self._answer = answer
        self._after_s = after_s
        self.cancelled = False

    async def get_async(self) -> Any:
        await asyncio.sleep(self._after_s)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def cancel(self) -> None:
        self.cancelled = True


class Handle:
    """As Serve's, from the calls it makes."""

    def __init__(self, *calls: Call, finds_after_s: float = 0.0) -> None:
        self.calls = list(calls)
        self._finds_after_s = finds_after_s
        self.asked: tuple[Any, ...] = ()

    def broadcast(self, *asked: Any) -> Handle:
        self.asked = asked
        return self

    async def _fetch_replica_results_async(self) -> list[Call]:
        await asyncio.sleep(self._finds_after_s)
        return self.calls


def test_a_replica_that_hangs_does_not_cost_the_others_answers() -> None:
    handle = Handle(Call(1), Call(2, after_s=3600), Call(RuntimeError("died")), Call(4, 0.03))

    async def go() -> None:
        answers = await ask_all(handle, "surrender", "token", timeout_s=0.04)
        assert answers == Answers((1, 4), 4)
        assert asyncio.get_running_loop().time() == 0.04

    run_virtual(go())
    assert handle.asked == ("surrender", "token")
    assert handle.calls[1].cancelled


def test_no_deployment_is_no_answer() -> None:
    class Missing:
        def broadcast(self, *asked: Any) -> Any:
            raise RuntimeError("no such app")

    async def go() -> None:
        assert await ask_all(Missing(), "x", timeout_s=1.0) == Answers((), 0)
        assert await ask_all(Handle(), "x", timeout_s=1.0) == Answers((), 0)
        assert await ask_all(Handle(finds_after_s=9.0), "x", timeout_s=1.0) == Answers((), 0)

    run_virtual(go())
