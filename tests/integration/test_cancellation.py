"""A caller that leaves frees its slot: its work is stopped in the engine, not only forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.integration

LONG = {
    "model": "support-assistant",
    "messages": [{"role": "user", "content": "Tell me a very long story about a dog."}],
    "max_tokens": 512,
    "ignore_eos": True,
}


@contextmanager
def beside_another(platform: Any, wait_for: Any) -> Iterator[None]:
    """While an answer of the same length runs that began before the body's.

    After the body, its slot must be free while that one still runs: without a cancellation that
    reaches the engine, the later of the two would also be the later to end.
    """

    def ongoing() -> int:
        return int(platform.replica("smollm2-135m-instruct@1.0.0").ongoing)

    with platform.client() as client, ThreadPoolExecutor(1) as pool:
        other = pool.submit(client.post, "/v1/chat/completions", json=LONG)
        wait_for("another answer under way", lambda: ongoing() == 1)
        yield
        wait_for("a free slot", lambda: ongoing() <= 1)
        assert not other.done(), "the slot was free no sooner than the work was done"
        assert other.result().status_code == 200


def settled(platform: Any, request_id: str, wait_for: Any) -> dict[str, Any]:
    [line] = wait_for(f"the end of {request_id}", lambda: platform.log_of(request_id))
    wait_for("an idle replica", lambda: is_idle(platform))
    return dict(line)


def is_idle(platform: Any) -> bool:
    return bool(platform.replica("smollm2-135m-instruct@1.0.0").ongoing == 0)


def test_a_unary_caller_that_hangs_up_is_noticed(platform: Any, wait_for: Any) -> None:
    """httpx sends its body in a packet of its own, where a splicing HAProxy misses the end."""
    with (
        beside_another(platform, wait_for),
        platform.client() as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        client.post(
            "/v1/chat/completions", json=LONG, timeout=0.7, headers={"X-Request-Id": "gone-1"}
        )
    line = settled(platform, "gone-1", wait_for)
    assert line["status"] == 499
    assert line["code"] == "cancelled"


def test_a_stream_left_in_the_middle_is_stopped_and_counted(platform: Any, wait_for: Any) -> None:
    headers = {"X-Request-Id": "gone-2"}
    with (
        beside_another(platform, wait_for),
        platform.client() as client,
        client.stream(
            "POST", "/v1/chat/completions", json=LONG | {"stream": True}, headers=headers
        ) as answer,
    ):
        lines = answer.iter_lines()
        for _ in range(20):
            next(lines)
    line = settled(platform, "gone-2", wait_for)
    assert line["status"] == 499
    assert 0 < line["output_tokens"] < 512


def test_a_small_models_caller_that_hangs_up_leaves_nothing_behind(
    platform: Any, wait_for: Any
) -> None:
    body = {"model": "support-embed", "input": ["a text that takes a while " * 20] * 500}
    with platform.client() as client, pytest.raises(httpx.ReadTimeout):
        client.post("/v1/embeddings", json=body, timeout=0.3, headers={"X-Request-Id": "gone-3"})
    [line] = wait_for("the end of gone-3", lambda: platform.log_of("gone-3"))
    assert line["status"] == 499
    wait_for("an idle embedder", lambda: platform.replica("all-minilm-l6-v2@1.0.0").ongoing == 0)


def test_a_small_models_caller_that_leaves_the_queue_of_batches_is_not_computed(
    platform: Any, wait_for: Any
) -> None:
    """It waits behind the batches of another, which goes on."""
    many = {"model": "support-embed", "input": ["a text that takes a while " * 20] * 400}
    one = {"model": "support-embed", "input": "a text"}
    with platform.client() as client, ThreadPoolExecutor(1) as pool:
        long = pool.submit(client.post, "/v1/embeddings", json=many)
        wait_for("a busy embedder", lambda: platform.replica("all-minilm-l6-v2@1.0.0").ongoing == 1)
        with pytest.raises(httpx.ReadTimeout):
            client.post(
                "/v1/embeddings", json=one, timeout=0.05, headers={"X-Request-Id": "gone-4"}
            )
        assert long.result().status_code == 200
    [line] = wait_for("the end of gone-4", lambda: platform.log_of("gone-4"))
    assert line["status"] == 499
    wait_for("an idle embedder", lambda: platform.replica("all-minilm-l6-v2@1.0.0").ongoing == 0)


def test_a_total_deadline_stops_a_unary_answer(platform: Any, wait_for: Any) -> None:
    headers = {"X-Deadline-Ms": "700", "X-Request-Id": "late-1"}
    with beside_another(platform, wait_for), platform.client() as client:
        answer = client.post("/v1/chat/completions", json=LONG, headers=headers)
    assert answer.status_code == 504
    assert answer.json()["error"]["reason"] == "total"
    assert answer.headers["x-should-retry"] == "false"
    assert settled(platform, "late-1", wait_for)["code"] == "deadline_exceeded"


def test_a_stream_that_fails_is_broken_off_and_never_says_done(
    platform: Any, wait_for: Any
) -> None:
    """OpenAI's clients read a clean end as success."""
    headers = {"X-Deadline-Ms": "1500", "X-Request-Id": "late-2"}
    seen: list[str] = []
    with (
        platform.client() as client,
        pytest.raises(httpx.RemoteProtocolError),
        client.stream(
            "POST", "/v1/chat/completions", json=LONG | {"stream": True}, headers=headers
        ) as answer,
    ):
        seen.extend(answer.iter_lines())
    assert settled(platform, "late-2", wait_for)["reason"] == "total"


def test_a_native_stream_that_fails_ends_with_one_error_event(platform: Any) -> None:
    body = {
        "model": "support-assistant",
        "conversation_id": "c-9",
        "messages": LONG["messages"],
        "max_output_tokens": 512,
        "stream": True,
        "deadline_ms": 250,
    }
    with platform.client() as client:
        answer = client.post("/v1/generate", json=body)
    if answer.status_code == 504:  # the machine was slow: no token in time, an ordinary error
        assert answer.json()["code"] == "deadline_exceeded"
        return
    names = [line for line in answer.text.splitlines() if line.startswith("event: ")]
    assert names[-1] in ("event: error", "event: done")
    assert sum(name != "event: delta" for name in names) == 1
