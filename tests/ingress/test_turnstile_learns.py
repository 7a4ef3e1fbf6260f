"""What the queue learns of requests that ended without an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from modelyard.contract.envelope import Failure, Item, Usage
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.testing.in_memory import InMemoryIngress, post
from modelyard.testing.scripted_transport import Sleep
from modelyard.testing.virtual_time import run_virtual

SLOTS = 2
ANSWER = Item(b"{}", 0, Usage(7, 2))


class World:
    """One replica that has answered 50 requests in 0.1 s each."""

    def __init__(self, ingress: InMemoryIngress, prepare: Callable[..., Prepared]) -> None:
        self.ingress = ingress
        self.prepare = prepare
        ingress.fleet.update([post("gen@1.0.0", slots=SLOTS)])

    def rate(self) -> float | None:
        return self.ingress.pipeline.turnstile.lanes.queue("gen@1.0.0").times.release_rate(SLOTS)

    def send(self) -> asyncio.Task[Item]:
        pipeline: Pipeline = self.ingress.pipeline
        return asyncio.create_task(pipeline.call(self.prepare(pipeline)))

    def takes(self, seconds: float, requests: int) -> None:
        for _ in range(requests):
            self.ingress.transport.expect([Sleep(seconds), ANSWER])

    async def learn(self) -> None:
        self.takes(0.1, 50)
        for _ in range(50):
            await self.send()
        assert self.rate() == pytest.approx(SLOTS / 0.1, rel=0.01)


def test_failures_at_once_do_not_make_the_queue_believe_in_quick_answers(
    ingress_at: Callable[..., InMemoryIngress], prepare: Callable[..., Prepared]
) -> None:
    async def main() -> None:
        world = World(ingress_at(), prepare)
        await world.learn()
        world.ingress.transport.expect(*[[Failure("internal", "boom")] for _ in range(200)])
        for _ in range(200):
            await asyncio.gather(world.send(), return_exceptions=True)
        assert [one.status for one in world.ingress.records[50:]] == [500] * 200
        assert world.rate() == pytest.approx(SLOTS / 0.1, rel=0.01)

    run_virtual(main())


def test_callers_that_give_up_do_not_hide_a_slow_model(
    ingress_at: Callable[..., InMemoryIngress], prepare: Callable[..., Prepared]
) -> None:
    async def main() -> None:
        world = World(ingress_at(), prepare)
        await world.learn()
        world.takes(50.0, 300)
        for _ in range(100):
            sent = [world.send() for _ in range(SLOTS)]
            await asyncio.sleep(5.0)
            for task in sent:
                task.cancel()
            await asyncio.gather(*sent, return_exceptions=True)
        assert world.rate() == pytest.approx(SLOTS / 5.0, rel=0.1)

    run_virtual(main())
