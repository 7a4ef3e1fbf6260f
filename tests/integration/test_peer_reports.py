"""What users of other serving systems reported about streams, cancellation and formats, tried here.

Each test names its report. Those that another file covers are not repeated: a caller that leaves is
in test_cancellation, test_random_cancellation and test_paused_engine, an engine that dies in
test_replacement.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from typing import Any

import httpx
import pytest

from cluster.local import LocalCluster
from modelyard.admission.outcome import MESSAGES
from modelyard.config.demo import DEMO_KEY
from modelyard.config.settings import Settings

pytestmark = pytest.mark.integration

GENERATOR = "smollm2-135m-instruct@1.0.0"
CLASSIFY = {"model": "support-intent", "input": "Where is my parcel?"}
CHAT = {
    "model": "support-assistant",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "temperature": 0,
}
IN_A_ROW = 5000


def ask_at_once(platform: Any, path: str, body: dict[str, Any], count: int) -> Counter[str]:
    """`count` requests that are all under way together; one that is refused comes again.

    How often each kind of answer was seen: the only other kind than "200" is a full queue's.
    """
    seen: Counter[str] = Counter()

    async def one(client: httpx.AsyncClient) -> None:
        while True:
            answer = await client.post(path, json=body)
            if answer.status_code == 200:
                seen["200"] += 1
                return
            error = answer.json()["error"]
            seen[f"{answer.status_code} {error['modelyard_code']} {error['reason']}"] += 1
            if seen.total() > 50 * count:
                return  # it would never end
            await asyncio.sleep(int(answer.headers["Retry-After"]))

    async def together() -> None:
        async with httpx.AsyncClient(
            base_url=platform.url,
            headers={"Authorization": f"Bearer {DEMO_KEY}"},
            timeout=120,
            limits=httpx.Limits(max_connections=None),
        ) as client:
            await asyncio.gather(*(one(client) for _ in range(count)))

    asyncio.run(together())
    return seen


@pytest.mark.parametrize(
    ("path", "body", "app", "count"),
    [
        pytest.param(
            "/v1/classify", CLASSIFY, "support-intent@1.0.0", 1000, marks=pytest.mark.slow
        ),
        ("/v1/chat/completions", CHAT | {"max_tokens": 1}, GENERATOR, 300),
    ],
    ids=["classifier", "generator"],
)
def test_many_requests_at_once_are_all_answered_and_kill_no_replica(
    platform: Any, wait_for: Any, path: str, body: dict[str, Any], app: str, count: int
) -> None:
    """aibrix 1838: 334 of 1000 failed with "context canceled". production-stack 448: the router
    restarted. ray 54070: the health check killed a busy replica."""
    before = platform.replica(app).pid
    seen = ask_at_once(platform, path, body, count)
    assert seen.pop("200") == count
    assert set(seen) <= {f"503 overloaded {reason}" for reason in MESSAGES}
    wait_for("an idle replica", lambda: platform.replica(app).ongoing == 0)
    assert platform.replica(app).pid == before


@pytest.mark.slow
def test_one_connection_serves_five_thousand_requests(platform: Any) -> None:
    """bentoml 4971: one in about 5000 was "Server disconnected without sending a response"."""
    seen: Counter[int] = Counter()
    with platform.client(limits=httpx.Limits(max_connections=1)) as client:
        for count in range(IN_A_ROW):
            # The body makes it a second packet, which is where a stale connection shows.
            answer = (
                client.post("/v1/classify", json=CLASSIFY)
                if count % 10 == 0
                else client.get("/v1/models")
            )
            seen[answer.status_code] += 1
    assert seen == {200: IN_A_ROW}


HEADERS = [
    "Connection: close",
    "Connection: keep-alive, X-Hop",
    "Connection: Upgrade, HTTP2-Settings",
    "Proxy-Connection: keep-alive",
    "Transfer-Encoding: chunked",
    "TE: trailers",
    "Expect: 100-continue",
    "Host: models.example.org",
    "Accept-Encoding: gzip, br, zstd",
    "Accept: text/html",
    "Origin: https://app.example.org",
    "Cookie: session=1",
    "X-Forwarded-For: 203.0.113.7, 10.0.0.1",
    "X-Session-Id: mine",
    "Serve-Multiplexed-Model-Id: other",
    "Content-Type: application/json; charset=utf-8",
]


def curl(platform: Any, body: dict[str, Any], *options: str) -> str:
    command = ["curl", "-sS", "-N", "-m", "60", f"{platform.url}/v1/chat/completions", *options]
    command += ["-H", f"Authorization: Bearer {DEMO_KEY}", "-d", json.dumps(body)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("header", HEADERS)
def test_a_callers_headers_break_nothing_behind_the_ingress(platform: Any, header: str) -> None:
    """production-stack 201: 503, because the client's headers were forwarded as they were."""
    options = ["-H", header, "--compressed"]
    if not header.startswith("Content-Type"):
        options += ["-H", "Content-Type: application/json"]
    answer = json.loads(curl(platform, CHAT, *options))
    assert answer["choices"][0]["message"]["content"] == "The capital of France is Paris."
    assert curl(platform, CHAT | {"stream": True}, *options).endswith("data: [DONE]\n\n")


REFUSED = [
    ("GET", "/nowhere", b"", {}, 404),
    ("DELETE", "/v1/chat/completions", b"", {}, 405),
    ("POST", "/v1/chat/completions", b"{}", {"Authorization": "Bearer nobody"}, 401),
    ("POST", "/v1/chat/completions", b"{", {}, 400),
    ("POST", "/v1/chat/completions", b"\xff\xfe", {}, 400),
    ("POST", "/v1/chat/completions", b"{}", {"Content-Type": "text/plain"}, 415),
    ("POST", "/v1/chat/completions", b'{"model": "nobody", "messages": []}', {}, 404),
    ("POST", "/v1/chat/completions", json.dumps(CHAT).encode(), {"X-Deadline-Ms": "1"}, 504),
    ("POST", "/v1/chat/completions", json.dumps(CHAT).encode(), {"X-Deadline-Ms": "x"}, 400),
    ("POST", "/v1/embeddings", json.dumps(CHAT).encode(), {}, 400),
]


@pytest.mark.parametrize(("method", "path", "body", "headers", "status"), REFUSED)
def test_an_error_is_json_wherever_it_comes_from(
    platform: Any, method: str, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    """aibrix 1111: a plain-text error of the engine became "invalid character 'u'" and a 500."""
    with platform.client() as client:
        answer = client.request(
            method, path, content=body, headers={"Content-Type": "application/json"} | headers
        )
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert error["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["x-should-retry"] == str(error["retryable"]).lower()
    assert isinstance(error["message"], str)


def test_a_caller_that_leaves_is_no_error_in_any_log(platform: Any, wait_for: Any) -> None:
    """ray 51598: StopAsyncIteration where a clean cancel belongs, at the hop to the replica."""
    before = complaints(platform)
    with pytest.raises(httpx.RemoteProtocolError):
        read_lines(platform, 1000, {"X-Request-Id": "broken-1", "X-Deadline-Ms": "2500"})
    wait_for(
        "the error of a broken stream, or this looks in vain", lambda: complaints(platform) - before
    )
    already = complaints(platform)
    for number in range(8):
        read_lines(platform, number, {"X-Request-Id": f"left-{number}"})
    wait_for("their log lines", lambda: all(platform.log_of(f"left-{n}") for n in range(8)))
    wait_for("an idle replica", lambda: platform.replica(GENERATOR).ongoing == 0)
    assert complaints(platform) - already == Counter()


def read_lines(platform: Any, count: int, headers: dict[str, str]) -> None:
    """Read so many lines of a long stream, and leave."""
    body = CHAT | {"stream": True, "max_tokens": 512, "ignore_eos": True}
    with (
        platform.client(headers=headers) as client,
        client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        for _, _ in zip(range(count), answer.iter_lines(), strict=False):
            pass


def complaints(platform: Any) -> Counter[str]:
    """The errors in the logs of Serve's replicas and in what their processes wrote to stderr."""
    running = LocalCluster(Settings(platform.home, platform.home / "secret")).running()
    assert running is not None
    logs = [*running.logs.glob("serve/replica_*.log"), *running.logs.glob("worker-*.err")]
    return Counter(
        f"{log.name}: {line}"
        for log in logs
        for line in log.read_text(errors="replace").splitlines()
        if line.startswith("ERROR") or "Traceback" in line or "StopAsyncIteration" in line
    )
