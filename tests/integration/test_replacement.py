"""A generator that dies is replaced and answers again; the others serve on meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import httpx
import psutil
import pytest

pytestmark = pytest.mark.integration

GENERATOR = "smollm2-135m-instruct@1.0.0"
FRANCE = {
    "model": "support-assistant",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "temperature": 0,
}
TYPED = {"overloaded", "replica_failed", "deadline_exceeded"}


def answers_again(platform: Any, wait_for: Any, client: httpx.Client, old_pid: int) -> None:
    """Ask until the new replica answers; what is refused until then is refused with a type."""

    def answered() -> Any:
        answer = client.post("/v1/chat/completions", json=FRANCE)
        if answer.status_code != 200:
            assert answer.json()["error"]["modelyard_code"] in TYPED
            return None
        return answer.json()

    answer = wait_for("an answer of the new replica", answered)
    assert "Paris" in answer["choices"][0]["message"]["content"]
    assert platform.replica(GENERATOR).pid != old_pid


def lines_until_broken(
    client: httpx.Client, body: dict[str, Any], after_first: Callable[[], None]
) -> list[str]:
    """A stream's lines up to where the connection breaks; a stream that ends fails the test."""
    seen: list[str] = []
    try:
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            for line in answer.iter_lines():
                seen.append(line)
                if len(seen) == 1:
                    after_first()
    except httpx.RemoteProtocolError:
        return seen
    pytest.fail(f"the stream ended cleanly after {seen[-2:]}")


def test_a_killed_replica_is_replaced_while_the_others_serve_on(
    platform: Any, wait_for: Any
) -> None:
    victim = platform.replica(GENERATOR).pid
    os.kill(victim, signal.SIGKILL)
    with platform.client() as client:
        embed = client.post("/v1/embeddings", json={"model": "support-embed", "input": "x"})
        assert embed.status_code == 200
        assert client.get("/health").status_code == 200
        answers_again(platform, wait_for, client, victim)


def test_a_killed_engine_takes_its_replica_with_it_and_tells_its_caller(
    platform: Any, wait_for: Any
) -> None:
    """A dead engine cannot be revived in place; its stream must break, not end."""
    victim = platform.replica(GENERATOR).pid
    engine = max(psutil.Process(victim).children(recursive=True), key=lambda p: p.memory_info().rss)
    body = FRANCE | {"stream": True, "max_tokens": 512, "ignore_eos": True}
    with platform.client(headers={"X-Request-Id": "engine-killed"}) as client:
        assert "data: [DONE]" not in lines_until_broken(client, body, engine.kill)
        [line] = wait_for("its log line", lambda: platform.log_of("engine-killed"))
        assert line["code"] == "replica_failed"
        answers_again(platform, wait_for, client, victim)
