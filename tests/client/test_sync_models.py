"""SyncModels: the same answers without a loop, and the same clean end."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from modelyard.client import RetryPolicy, SyncModels, background
from modelyard.contract import native
from modelyard.contract.errors import Overloaded, ReplicaFailed
from modelyard.contract.reply import Reply

Scripted = Callable[[list[Sequence[Any]]], Any]
CLASSES = b'{"data": [{"label": "yes", "probs": [1.0]}]}'


def models_over(ingress: Any, **options: Any) -> SyncModels:
    return SyncModels("my_key", ingress=ingress, retry=RetryPolicy(max_attempts=1), **options)


def test_a_call_waits_for_its_answer(scripted: Scripted, reply: Reply) -> None:
    ingress = scripted([[reply._replace(data=CLASSES)]])
    assert models_over(ingress).classify("intent", ["a"]).labels == ["yes"]
    [asked] = ingress.asked
    assert asked.key == "my_key"


def test_an_error_is_raised_to_the_caller(scripted: Scripted) -> None:
    with pytest.raises(Overloaded):
        models_over(scripted([[Overloaded("full").failure()]])).classify("intent", ["a"])


def test_threads_share_the_places(scripted: Scripted, reply: Reply) -> None:
    ingress = scripted([[0.0, reply._replace(data=CLASSES)]])
    models = models_over(ingress, max_in_flight=2)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: models.classify("intent", ["a"]), range(16)))
    assert len(ingress.asked) == 16
    assert ingress.most_under_way == 2


def test_a_stream_is_an_ordinary_generator(scripted: Scripted, reply: Reply) -> None:
    last = reply._replace(data=native.done_event("gen@1.0.0", reply.usage))
    ingress = scripted([[native.delta_event(0, "a"), native.delta_event(0, "b"), last]])
    chunks = list(models_over(ingress).stream("chat", "x", max_output_tokens=4))
    assert [chunk.text for chunk in chunks] == ["a", "b", ""]
    assert chunks[-1].final is not None
    assert chunks[-1].final.text == "ab"


def test_a_failed_stream_raises_after_what_had_arrived(scripted: Scripted) -> None:
    ingress = scripted([[native.delta_event(0, "a"), ReplicaFailed("died").failure()]])
    stream = models_over(ingress).stream("chat", "x", max_output_tokens=4)
    assert next(stream).text == "a"
    with pytest.raises(ReplicaFailed) as caught:
        next(stream)
    assert caught.value.partial == "a"


def test_closing_a_stream_cancels_it(scripted: Scripted, reply: Reply) -> None:
    ingress = scripted([[native.delta_event(0, "a"), 3600.0], [reply._replace(data=CLASSES)]])
    models = models_over(ingress, max_in_flight=1)
    stream = models.stream("chat", "x", max_output_tokens=4)
    assert next(stream).text == "a"
    stream.close()
    # Its place is free again, or this would wait for an hour.
    assert models.classify("intent", ["a"]).labels == ["yes"]
    assert ingress.asked[0].closed


def test_one_thread_serves_every_client_of_the_process(scripted: Scripted, reply: Reply) -> None:
    for _ in range(3):
        models_over(scripted([[reply._replace(data=CLASSES)]])).classify("intent", ["a"])
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("modelyard-client") == 1


def test_threads_that_come_first_together_share_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = threading.Barrier(2)
    made: list[asyncio.AbstractEventLoop] = []

    class Loop(asyncio.SelectorEventLoop):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)
            # Both threads are in here at once, or the second waits outside and this one gives up.
            with suppress(threading.BrokenBarrierError):
                inside.wait(0.5)

    before = set(threading.enumerate())
    monkeypatch.setattr(asyncio, "new_event_loop", Loop)
    uncached = background._started_loop.__wrapped__
    monkeypatch.setattr(background, "_started_loop", functools.cache(uncached))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: background._loop(), range(2))
    try:
        assert first is second
        assert made == [first]
    finally:
        for loop in made:
            loop.call_soon_threadsafe(loop.stop)
        for thread in set(threading.enumerate()) - before:
            thread.join()
        for loop in made:
            loop.close()
