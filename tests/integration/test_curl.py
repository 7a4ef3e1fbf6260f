"""Each route with curl, as the README shows it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any

import pytest

from modelyard.config.demo import DEMO_KEY

pytestmark = pytest.mark.integration

PASSAGES = [
    "Parcels leave our warehouse on weekdays before noon.",
    "Refunds for duplicate charges are paid within five working days.",
]

STORY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Tell me a long story about a lighthouse."}]
}
CURLE_PARTIAL_FILE = 18


def curl(platform: Any, path: str, body: dict[str, Any] | None = None, *options: str) -> str:
    command = ["curl", "-sS", "-m", "60", f"{platform.url}{path}", *options]
    command += ["-H", f"Authorization: Bearer {DEMO_KEY}"]
    if body is not None:
        command += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def pieces(platform: Any, body: dict[str, Any], *options: str) -> tuple[int, list[bytes]]:
    """What `curl -N` wrote, read by read, for a streamed chat; and its exit status."""
    command = ["curl", "-sN", "-m", "60", f"{platform.url}/v1/chat/completions", *options]
    command += ["-H", f"Authorization: Bearer {DEMO_KEY}", "-H", "Content-Type: application/json"]
    command += ["-d", json.dumps(body | {"model": "support-assistant", "stream": True})]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        pipe = running.stdout.fileno()
        read = list(iter(lambda: os.read(pipe, 65536), b""))
    return running.returncode, read


def native(**options: Any) -> dict[str, Any]:
    return {
        "model": "support-assistant",
        "conversation_id": "c-1",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "max_output_tokens": 16,
        "temperature": 0,
    } | options


def test_generate_answers_in_the_seeds_shape(platform: Any) -> None:
    answer = json.loads(curl(platform, "/v1/generate", native()))
    assert set(answer) == {"id", "model_version", "output", "finish_reason", "usage"}
    assert answer["output"] == "The capital of France is Paris."
    assert answer["model_version"] == "smollm2-135m-instruct@1.0.0"
    assert answer["finish_reason"] == "stop"
    assert answer["usage"]["output_tokens"] > 0


def test_a_generate_stream_is_deltas_and_one_done(platform: Any) -> None:
    text = curl(platform, "/v1/generate", native(stream=True), "-N")
    events = [dict(line.split(": ", 1) for line in e.splitlines()) for e in text.split("\n\n") if e]
    assert [event["event"] for event in events[:-1]] == ["delta"] * (len(events) - 1)
    deltas = [json.loads(event["data"]) for event in events[:-1]]
    assert [delta["index"] for delta in deltas] == list(range(len(deltas)))
    assert "".join(delta["text"] for delta in deltas) == "The capital of France is Paris."
    assert events[-1]["event"] == "done"
    assert json.loads(events[-1]["data"])["finish_reason"] == "stop"


def test_a_stream_arrives_piece_by_piece(platform: Any) -> None:
    """No hop may hold the pieces back until the end."""
    body = native(
        stream=True,
        max_output_tokens=200,
        messages=[{"role": "user", "content": "Tell me a long story about a lighthouse."}],
    )
    with platform.client() as client, client.stream("POST", "/v1/generate", json=body) as answer:
        times = [time.monotonic() for _ in answer.iter_raw()]
    assert len(times) > 10
    halfway = times[len(times) // 2] - times[0]
    assert 0.1 < halfway / (times[-1] - times[0]) < 0.9


def test_curl_prints_each_event_as_it_is_made(platform: Any) -> None:
    status, read = pieces(platform, STORY | {"max_tokens": 100})
    assert status == 0
    assert len(read) > 10
    events = b"".join(read).split(b"\n\n")
    assert events[-2:] == [b"data: [DONE]", b""]
    assert all(json.loads(event.removeprefix(b"data: ")) for event in events[:-2])
    assert b"[DONE]" not in b"".join(read[: len(read) // 2])


def test_an_http_1_0_client_gets_the_stream_too(platform: Any) -> None:
    status, read = pieces(platform, STORY | {"max_tokens": 10}, "-0")
    assert status == 0
    assert b"".join(read).endswith(b"data: [DONE]\n\n")


def test_a_stream_that_fails_is_an_error_for_curl(platform: Any) -> None:
    """Its last event says why; then the connection breaks, which curl's status 18 tells."""
    long = STORY | {"max_tokens": 512, "ignore_eos": True}
    status, read = pieces(platform, long, "-H", "X-Deadline-Ms: 2500")
    assert status == CURLE_PARTIAL_FILE
    *tokens, error, end = b"".join(read).split(b"\n\n")
    assert end == b""
    assert b"data: [DONE]" not in tokens
    assert json.loads(error.removeprefix(b"data: "))["error"]["reason"] == "total"


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank", "/v2/rerank"])
def test_rerank_puts_the_right_passage_first(platform: Any, path: str) -> None:
    body = {"model": "support-rerank", "query": "I was charged twice", "documents": PASSAGES}
    answer = json.loads(curl(platform, path, body | {"top_n": 9}))
    assert [result["index"] for result in answer["results"]] == [1, 0]
    assert all(0 <= result["relevance_score"] <= 1 for result in answer["results"])
    assert ("document" in answer["results"][0]) == (path != "/v2/rerank")


@pytest.mark.parametrize("path", ["/v1/classify", "/classify"])
def test_classify_names_the_intent(platform: Any, path: str) -> None:
    body = {"model": "support-intent", "input": ["Where is my parcel?", "Let me talk to a person"]}
    answer = json.loads(curl(platform, path, body))
    assert [item["label"] for item in answer["data"]] == ["order_status", "human_agent"]
    assert sum(answer["data"][0]["probs"]) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("path", ["/v1/score", "/score"])
def test_score_compares_one_text_with_many(platform: Any, path: str) -> None:
    body = {"model": "support-rerank", "text_1": "I was charged twice", "text_2": PASSAGES}
    scores = [item["score"] for item in json.loads(curl(platform, path, body))["data"]]
    assert scores[1] > scores[0]


def test_every_answer_carries_one_request_id(platform: Any) -> None:
    head = curl(platform, "/v1/models", None, "-i", "-H", "X-Request-Id: mine.1")
    assert head.lower().count("x-request-id: mine.1") == 1
    minted = curl(platform, "/v1/models", None, "-i")
    assert minted.lower().count("x-request-id:") == 1


def test_what_has_no_route_is_json(platform: Any) -> None:
    assert json.loads(curl(platform, "/nowhere"))["error"]["modelyard_code"] == "not_found"
    assert "405" in curl(platform, "/v1/embeddings", None, "-i").splitlines()[0]


def test_a_body_over_the_limit_is_refused(platform: Any) -> None:
    with platform.client() as client:
        big = client.post(
            "/v1/embeddings",
            content=b'{"model":"' + b"x" * 5_000_000 + b'"}',
            headers={"Content-Type": "application/json"},
        )
    assert big.status_code == 413
    assert big.json()["error"]["modelyard_code"] == "invalid_request"


def test_health_needs_no_key_and_asks_for_one_model(platform: Any) -> None:
    with platform.client(key=None) as client:
        for path in ("/health", "/health/live", "/health/ready", "/health/startup"):
            assert client.get(path).status_code == 200
        assert client.get("/health/ready", params={"model": "support-intent"}).status_code == 200
        assert client.get("/health/ready", params={"model": "nobody"}).status_code == 404


def test_the_log_has_one_line_a_request_and_no_prompt(platform: Any, wait_for: Any) -> None:
    marker = "xylophone-marker"
    body = native(messages=[{"role": "user", "content": marker}])
    curl(platform, "/v1/generate", body, "-H", "X-Request-Id: logged-1")
    [line] = wait_for("the log line", lambda: platform.log_of("logged-1"))
    assert line["tenant"] == "demo"
    assert line["version"] == "smollm2-135m-instruct@1.0.0"
    assert line["status"] == 200
    assert line["output_tokens"] > 0
    assert marker not in json.dumps(line)
