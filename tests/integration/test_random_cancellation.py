"""Five hundred callers that leave within 20 ms: nothing of them stays, and every slot is free."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from modelyard.config.demo import DEMO_KEY

pytestmark = pytest.mark.integration

REQUESTS = 500
AT_ONCE = 50
SEED = 3
STEADY_LOOKS = 30  # a tenth of a second each, as `wait_for` looks
SLOTS = 40  # max_ongoing_requests of the generator in configs/local.serve.yaml
LONG = {
    "model": "support-assistant",
    "messages": [{"role": "user", "content": "Tell me a very long story about a dog."}],
    "max_tokens": 400,
    "ignore_eos": True,
}
KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/chat/completions", LONG),
    ("/v1/chat/completions", LONG | {"stream": True}),
    ("/v1/embeddings", {"model": "support-embed", "input": ["a text " * 40] * 64}),
    ("/v1/classify", {"model": "support-intent", "input": ["where is my order " * 10] * 32}),
    ("/v1/rerank", {"model": "support-rerank", "query": "q", "documents": ["d " * 40] * 32}),
)
GENERATOR = "smollm2-135m-instruct@1.0.0"
APPS = (
    GENERATOR,
    "all-minilm-l6-v2@1.0.0",
    "support-intent@1.0.0",
    "minilm-reranker@1.0.0",
)


def on_the_wire(path: str, body: dict[str, Any], request_id: str) -> bytes:
    """A request as bytes: so that the 20 ms count from its sending, not from a client's set-up."""
    content = json.dumps(body).encode()
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: test",
        f"Authorization: Bearer {DEMO_KEY}",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        f"X-Request-Id: {request_id}",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


async def leave_at_random(platform: Any, name: str) -> None:
    chance = random.Random(SEED)
    room = asyncio.Semaphore(AT_ONCE)
    port = int(platform.url.rpartition(":")[2])

    async def one(number: int) -> None:
        path, body = KINDS[number % len(KINDS)]
        async with room:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(on_the_wire(path, body, f"{name}-{number}"))
            await writer.drain()
            await asyncio.sleep(chance.uniform(0, 0.02))
            writer.close()
            await writer.wait_closed()

    await asyncio.gather(*(one(number) for number in range(REQUESTS)))


async def with_every_slot_taken(platform: Any, wait_for: Any, then: Callable[[], Any]) -> None:
    """Send as many requests as there are slots, run `then` while all of them run, and leave."""
    async with httpx.AsyncClient(
        base_url=platform.url, headers={"Authorization": f"Bearer {DEMO_KEY}"}, timeout=120.0
    ) as client:
        sent = [
            asyncio.create_task(client.post("/v1/chat/completions", json=LONG))
            for _ in range(SLOTS)
        ]
        await asyncio.to_thread(
            wait_for, "every slot in use", lambda: platform.replica(GENERATOR).ongoing == SLOTS
        )
        await asyncio.to_thread(then)
        for one in sent:
            one.cancel()
        await asyncio.gather(*sent, return_exceptions=True)


def logged(platform: Any, name: str) -> list[dict[str, Any]]:
    lines = (
        json.loads(line)
        for path in (platform.home / "logs").glob("requests-*.jsonl")
        for line in path.read_text().splitlines()
    )
    return [line for line in lines if line["request_id"].startswith(f"{name}-")]


def at_rest(platform: Any, wait_for: Any, name: str) -> list[dict[str, Any]]:
    """The log's lines of a run, once no more come: idle replicas alone may mean "not yet begun"."""
    seen: list[int] = []

    def steady() -> bool:
        seen.append(len(logged(platform, name)))
        return seen[-1] > 0 and seen[-STEADY_LOOKS:] == [seen[-1]] * STEADY_LOOKS

    wait_for("a request log that comes to rest", steady)
    return logged(platform, name)


def test_five_hundred_callers_that_leave_at_random_leave_nothing_behind(
    platform: Any, wait_for: Any
) -> None:
    name = uuid.uuid4().hex  # the request log of a platform that serves several runs
    asyncio.run(leave_at_random(platform, name))
    lines = at_rest(platform, wait_for, name)
    for app in APPS:
        wait_for(f"an idle {app}", lambda app=app: platform.replica(app).ongoing == 0)
    counts = Counter(line["request_id"] for line in lines)
    assert set(counts.values()) == {1}, "each that arrived is settled once"
    codes = Counter(line["code"] for line in lines)
    assert codes["cancelled"] > REQUESTS / 10, codes
    assert set(codes) <= {"cancelled", "ok"}, codes

    asyncio.run(with_every_slot_taken(platform, wait_for, lambda: None))
    wait_for("an idle generator", lambda: platform.replica(GENERATOR).ongoing == 0)


def test_a_caller_that_leaves_while_it_waits_for_a_slot_never_reaches_the_model(
    platform: Any, wait_for: Any
) -> None:
    name = uuid.uuid4().hex

    def leave() -> None:
        with platform.client() as client, pytest.raises(httpx.ReadTimeout):
            client.post(
                "/v1/chat/completions", json=LONG, timeout=1.0, headers={"X-Request-Id": name}
            )
        [line] = wait_for("its log line", lambda: platform.log_of(name))
        assert (line["code"], line["output_tokens"]) == ("cancelled", 0)
        assert platform.replica(GENERATOR).ongoing == SLOTS

    asyncio.run(with_every_slot_taken(platform, wait_for, leave))
    wait_for("an idle generator", lambda: platform.replica(GENERATOR).ongoing == 0)
