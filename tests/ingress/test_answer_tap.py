"""Those who listen to answers, and what they cost the request: nothing, not even by failing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from modelyard.contract.envelope import Failure, Item
from modelyard.contract.errors import RequestError
from modelyard.contract.operations import Operation
from modelyard.ingress.prepared import Prepared
from modelyard.testing.in_memory import InMemoryIngress

Prepare = Callable[..., Prepared]


class Listener:
    """An observer that keeps what it hears, and its own tap."""

    def __init__(self, *, listens: bool = True, fails: str = "") -> None:
        self.listens = listens
        self.fails = fails
        self.heard: list[Any] = []

    def wants(self, prepared: Prepared) -> Listener | None:
        self._maybe("wants")
        self.heard.append("wants")
        return self if self.listens else None

    def item(self, item: Item) -> None:
        self._maybe("item")
        self.heard.append(item)

    def ended(self, prepared: Prepared) -> None:
        self._maybe("ended")
        assert prepared.record.duration_ms > 0
        self.heard.append(prepared.record.status)

    def close(self) -> None:
        self.heard.append("close")

    def _maybe(self, where: str) -> None:
        if self.fails == where:
            raise ValueError("a bug of the listener")


async def test_a_stream_is_heard_item_by_item_and_its_end_once(
    prepare: Prepare, first: Item, last: Item
) -> None:
    ingress, one, other = InMemoryIngress([first, last]), Listener(), Listener(listens=False)
    ingress.pipeline.observers = (one, other)
    prepared = prepare(ingress.pipeline, stream=True)
    assert [item async for item in ingress.pipeline.stream(prepared)] == [first, last]
    assert one.heard == ["wants", first, last, 200]
    assert other.heard == ["wants"]


async def test_a_whole_answer_is_heard(prepare: Prepare, unary: Item) -> None:
    ingress, one = InMemoryIngress([unary]), Listener()
    ingress.pipeline.observers = (one,)
    await ingress.pipeline.call(prepare(ingress.pipeline))
    assert one.heard == ["wants", unary, 200]


async def test_the_end_of_a_failed_request_is_heard(prepare: Prepare) -> None:
    ingress, one = InMemoryIngress([Failure("internal", "a bug")]), Listener()
    ingress.pipeline.observers = (one,)
    with pytest.raises(RequestError):
        await ingress.pipeline.call(prepare(ingress.pipeline))
    assert one.heard == ["wants", 500]


async def test_a_client_that_leaves_ends_it_once(prepare: Prepare, first: Item) -> None:
    ingress, one = InMemoryIngress([first, first]), Listener()
    ingress.pipeline.observers = (one,)
    items = ingress.pipeline.stream(prepare(ingress.pipeline, stream=True))
    async with contextlib.aclosing(items):
        await anext(items)
    assert one.heard == ["wants", first, 499]


async def test_what_is_never_dispatched_is_not_offered(prepare: Prepare) -> None:
    ingress, one = InMemoryIngress(), Listener()
    ingress.pipeline.observers = (one,)
    prepared = prepare(ingress.pipeline, headers={"X-Deadline-Ms": "0.001"})
    with pytest.raises(RequestError):
        await ingress.pipeline.call(prepared)
    assert one.heard == []


@pytest.mark.parametrize("where", ["wants", "item", "ended"])
async def test_a_listeners_bug_reaches_the_log_and_no_request(
    where: str, prepare: Prepare, first: Item, last: Item, caplog: pytest.LogCaptureFixture
) -> None:
    ingress, broken, whole = InMemoryIngress([first, last]), Listener(fails=where), Listener()
    ingress.pipeline.observers = (broken, whole)
    prepared = prepare(ingress.pipeline, stream=True)
    assert [item async for item in ingress.pipeline.stream(prepared)] == [first, last]
    assert whole.heard == ["wants", first, last, 200]
    assert first not in broken.heard or where == "ended"
    # Its kind and place: a message may hold what it listened to.
    assert "at test_answer_tap.py:" in caplog.text
    assert "a bug of the listener" not in caplog.text
    assert [record.status for record in ingress.records] == [200]


async def test_the_prompt_that_was_sent_is_there_for_a_copy(prepare: Prepare, unary: Item) -> None:
    class Copier(Listener):
        def ended(self, prepared: Prepared) -> None:
            self.heard = [json.loads(prepared.work.encoded)["messages"][0]["role"]]

    ingress, one = InMemoryIngress([unary]), Copier()
    ingress.pipeline.observers = (one,)
    await ingress.pipeline.call(prepare(ingress.pipeline, Operation.CHAT))
    assert one.heard == ["user"]
