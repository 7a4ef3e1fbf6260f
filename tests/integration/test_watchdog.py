"""What stops making progress is found, told apart, replaced; what works for long is let be.

The tests' configuration gives a busy generator 25 s, or four times its warm-up's longest step where
that is more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from modelyard.config.demo import OPS_KEY

pytestmark = pytest.mark.integration

GENERATOR = "smollm2-135m-instruct@1.0.0"
EMBEDDER = "all-minilm-l6-v2@1.0.0"
CHAT = {
    "model": "support-assistant",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "temperature": 0,
}
EMBED = {"model": "support-embed", "input": "a text"}
BROKEN = {"replica_failed", "deadline_exceeded", "overloaded"}
SATURATED_S = 90.0
CALLERS = 12


def restarts(platform: Any, version: str, cause: str) -> float:
    with platform.client(OPS_KEY) as http:
        text = http.get("/metrics").text
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "modelyard_replica_restarts_total"
        and (sample.labels["version"], sample.labels["cause"]) == (version, cause)
    )


def engine_of(platform: Any) -> psutil.Process:
    children = psutil.Process(platform.replica(GENERATOR).pid).children(recursive=True)
    return max(children, key=lambda child: child.memory_info().rss)


@contextmanager
def serving_on(platform: Any) -> Iterator[list[int]]:
    """The statuses of another model's requests, one after the other."""
    seen: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        with platform.client() as client:
            while not stop.wait(0.1):
                seen.append(client.post("/v1/embeddings", json=EMBED).status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def answered(client: httpx.Client, path: str, body: dict[str, Any]) -> Callable[[], bool]:
    def ask() -> bool:
        answer = client.post(path, json=body)
        if answer.status_code != 200:
            assert answer.json()["error"]["modelyard_code"] in BROKEN
        return answer.status_code == 200

    return ask


@pytest.mark.slow
def test_a_stopped_engine_is_stalled_and_replaced_while_the_others_serve_on(
    platform: Any, wait_for: Any
) -> None:
    victim, engine = platform.replica(GENERATOR).pid, engine_of(platform)
    before = restarts(platform, GENERATOR, "stalled")
    with platform.client() as client, serving_on(platform) as others:
        engine.suspend()
        began = time.monotonic()
        answer = client.post("/v1/chat/completions", json=CHAT, headers={"X-Deadline-Ms": "20000"})
        waited_s = time.monotonic() - began
        assert answer.json()["error"]["modelyard_code"] in BROKEN
        # Its engine is still busy with it: an engine that was stopped cannot hear of an abort, and
        # what comes next shows that it is not idle.
        wait_for(
            "the stall",
            lambda: (
                answered(client, "/v1/chat/completions", CHAT)()
                or restarts(platform, GENERATOR, "stalled") == before + 1
            ),
        )
        wait_for("an answer", answered(client, "/v1/chat/completions", CHAT))
    print(f"the caller heard after {waited_s:.1f} s: {answer.status_code}")
    assert restarts(platform, GENERATOR, "stalled") == before + 1
    assert set(others) == {200}
    assert not engine.is_running(), "a stopped engine outlived its replica"
    assert platform.replica(GENERATOR).pid != victim


def test_a_killed_replica_has_crashed(platform: Any, wait_for: Any) -> None:
    before = restarts(platform, GENERATOR, "crashed")
    psutil.Process(platform.replica(GENERATOR).pid).kill()
    with platform.client() as client:
        wait_for("an answer", answered(client, "/v1/chat/completions", CHAT))
    wait_for("its count", lambda: restarts(platform, GENERATOR, "crashed") == before + 1)


@pytest.mark.slow
def test_a_small_model_that_hangs_whole_is_replaced(platform: Any, wait_for: Any) -> None:
    """Its own watchdog hangs too: Serve's health check finds it, and keeps the process for its
    grace period."""
    before = restarts(platform, EMBEDDER, "crashed")
    victim = psutil.Process(platform.replica(EMBEDDER).pid)
    victim.suspend()
    try:
        with platform.client() as client:
            headers = {"X-Deadline-Ms": "3000"}
            late = client.post("/v1/embeddings", json=EMBED, headers=headers)
            assert late.json()["error"]["modelyard_code"] in BROKEN
            wait_for("an answer", answered(client, "/v1/embeddings", EMBED))
        wait_for("its count", lambda: restarts(platform, EMBEDDER, "crashed") == before + 1)
        assert platform.replica(EMBEDDER).pid != victim.pid
    finally:
        with suppress(psutil.NoSuchProcess):
            victim.kill()


@pytest.mark.slow
def test_saturation_by_long_prompts_is_no_stall(platform: Any) -> None:
    """Prompts near the limit, none of them in the prefix cache, many more than there are slots."""
    pid, until = platform.replica(GENERATOR).pid, time.monotonic() + SATURATED_S
    before = restarts(platform, GENERATOR, "stalled")

    def ask(caller: int) -> int:
        count = 0
        with platform.client() as client:
            while time.monotonic() < until:
                words = " ".join(f"{caller}-{count}-{place}" for place in range(200))
                body = CHAT | {"messages": [{"role": "user", "content": words}], "max_tokens": 32}
                answer = client.post("/v1/chat/completions", json=body)
                assert answer.status_code in (200, 429, 503, 504), answer.text
                count += answer.status_code == 200
        return count

    with ThreadPoolExecutor(CALLERS) as pool:
        done = sum(pool.map(ask, range(CALLERS)))
    assert done > 0
    assert restarts(platform, GENERATOR, "stalled") == before
    assert platform.replica(GENERATOR).pid == pid
