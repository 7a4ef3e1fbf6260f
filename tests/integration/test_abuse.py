"""The worst that a caller can send, at the real platform, while a neighbour streams.

Each is refused with a type, the neighbour's tokens keep coming, and the memory comes back.
"""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import httpx
import psutil
import pytest

from modelyard.config.demo import DEMO_KEY

pytestmark = pytest.mark.integration

MIB: Final = 1 << 20
CHAT: Final = "/v1/chat/completions"
GENERATOR: Final = "smollm2-135m-instruct@1.0.0"
MODELS: Final = (
    GENERATOR,
    "all-minilm-l6-v2@1.0.0",
    "support-intent@1.0.0",
    "minilm-reranker@1.0.0",
)
SHORT: Final[dict[str, Any]] = {
    "model": "support-assistant",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": 4,
}
JSON: Final = {"Content-Type": "application/json"}


class Neighbour:
    """A caller that streams answer after answer, and counts what arrives."""

    def __init__(self, platform: Any) -> None:
        self.chunks = 0
        self.failures: list[str] = []
        self._platform = platform
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        body = SHORT | {"stream": True, "max_tokens": 300, "ignore_eos": True}
        with self._platform.client() as client:
            while not self._stop.is_set():
                with client.stream("POST", CHAT, json=body) as answer:
                    lines = list(self._counted(answer))
                if not self._stop.is_set() and "data: [DONE]" not in lines:
                    self.failures.append(f"{answer.status_code} {lines[-1:]}")

    def _counted(self, answer: httpx.Response) -> Iterator[str]:
        for line in answer.iter_lines():
            self.chunks += line.startswith("data: ")
            yield line
            if self._stop.is_set():
                return

    def __enter__(self) -> Neighbour:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def told_off(answer: httpx.Response) -> bool:
    error = answer.json()["error"]
    return (
        400 <= answer.status_code < 500
        and error["modelyard_code"] == "invalid_request"
        and answer.headers["x-should-retry"] == "false"
    )


def constrained(**constraint: Any) -> dict[str, Any]:
    return SHORT | {"structured_outputs": constraint}


REFUSED: Final[dict[str, dict[str, Any]]] = {
    "n": SHORT | {"n": 10**9},
    "logit_bias": SHORT | {"logit_bias": {str(token): 1 for token in range(49_000)}},
    "a token that is none": SHORT | {"logit_bias": {"4294967295": 1}},
    "seed": SHORT | {"seed": 2**63},
    "min_tokens": SHORT | {"min_tokens": 10**12},
    "a regex of 65536 states": constrained(regex="(a{0,256}){0,256}"),
    "a regex read in many ways": constrained(regex="(" * 50 + "." + "+)" * 50),
    "a grammar of 16 million states": constrained(
        grammar="root ::= a{256}\na ::= b{256}\nb ::= [a-z]{0,256}"
    ),
    "a grammar read in many ways": constrained(grammar='root ::= root root | "a" | ""'),
    "a schema that is only itself": constrained(json={"$ref": "#"}),
    "a schema of two that are each other": constrained(
        json={
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
            "$ref": "#/$defs/a",
        }
    ),
    "maxLength": constrained(json={"type": "string", "maxLength": 10**9}),
    "minItems": constrained(json={"type": "array", "minItems": 10**9}),
    "a huge enum": constrained(json={"enum": [f"value {index}" for index in range(50_000)]}),
    "properties that are counted": constrained(
        json={
            "type": "object",
            "minProperties": 500,
            "properties": {f"k{index}": {} for index in range(1000)},
        }
    ),
}
RAW: Final[dict[str, bytes]] = {
    "deep": b'{"a":' * 500_000 + b"1" + b"}" * 500_000,
    "NaN": json.dumps(SHORT)[:-1].encode() + b', "temperature": NaN}',
    "1e999": json.dumps(SHORT)[:-1].encode() + b', "temperature": 1e999}',
    "invalid UTF-8": b'{"model": "\xff"}',
    "digits": b'{"model": "x", "n": ' + b"9" * 1_000_000 + b"}",
    "4 MiB of numbers": b'{"model": "support-embed", "input": [' + b"1," * 2_000_000 + b"1]}",
}


def test_abuse_harms_no_neighbour_and_leaves_no_memory_behind(platform: Any, wait_for: Any) -> None:
    with Neighbour(platform) as neighbour, platform.client() as client:
        wait_for("the neighbour's first tokens", lambda: neighbour.chunks > 5)
        seen = neighbour.chunks
        for _ in range(2):  # fills what is kept once: caches, and the arenas of malloc
            abuse(platform, client)
        before = memory(platform)
        abuse(platform, client)
        assert neighbour.chunks > seen
        assert neighbour.failures == []
    # A round holds 100 MB bodies, 4 MiB bodies and 4 MiB of JSON: one of them kept would be seen.
    for name, after in memory(platform).items():
        assert after < before[name] + 64 * MIB, (name, before[name], after)


def abuse(platform: Any, client: httpx.Client) -> None:
    for name, body in REFUSED.items():
        answer = client.post(CHAT, json=body)
        assert told_off(answer), (name, answer.text[:300])
    for name, raw in RAW.items():
        answer = client.post(CHAT, content=raw, headers=JSON)
        assert told_off(answer), (name, answer.text[:300])
    for _ in range(2):
        assert flood(platform, announced=True) == b"413"
        assert flood(platform, announced=False) == b"413"
        assert compressed(client).status_code == 415


def memory(platform: Any) -> dict[str, int]:
    """Resident bytes of the ingresses and of each model's replica, with its engine."""
    pids = {app: [platform.replica(app).pid] for app in MODELS}
    pids["ingress"] = [process.pid for process in platform.ingresses()]
    return {
        name: sum(
            process.memory_info().rss
            for pid in of_one
            for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        )
        for name, of_one in pids.items()
    }


def flood(platform: Any, *, announced: bool) -> bytes:
    """Send 100 MiB, whatever comes back meanwhile; the status of what does."""
    framing = f"Content-Length: {100 * MIB}" if announced else "Transfer-Encoding: chunked"
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {DEMO_KEY}\r\n"
        f"Content-Type: application/json\r\n{framing}\r\n\r\n"
    )
    piece = b" " * MIB if announced else b"100000\r\n" + b" " * MIB + b"\r\n"
    with socket.create_connection(address(platform), timeout=60) as line:
        line.sendall(head.encode())
        with suppress(OSError):  # it hangs up on us, as it should
            for _ in range(100):
                line.sendall(piece)
        return line.recv(4096).split(b" ", 2)[1]


def address(platform: Any) -> tuple[str, int]:
    url = httpx.URL(platform.url)
    assert url.port is not None
    return url.host, url.port


def compressed(client: httpx.Client) -> httpx.Response:
    bomb = gzip.compress(b" " * (200 * MIB), compresslevel=1)
    return client.post(CHAT, content=bomb, headers=JSON | {"Content-Encoding": "gzip"})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Deadline-Ms": "nan"}, 400),
        ({"X-Deadline-Ms": "inf"}, 400),
        ({"X-Deadline-Ms": "-1"}, 400),
        ({"X-Deadline-Ms": "5e-324"}, 400),
        ({"X-Deadline-Ms": "\u00b2"}, 400),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"X-Request-Id": "a b\t" + "c" * 5000}, 200),
        ({"traceparent": "00-\u00ff-" + "x" * 5000}, 200),
    ],
)
def test_odd_headers_are_refused_or_ignored(
    platform: Any, headers: dict[str, str], status: int
) -> None:
    raw = {name: value.encode("latin-1") for name, value in (JSON | headers).items()}
    with platform.client() as client:
        answer = client.post(CHAT, content=json.dumps(SHORT), headers=list(raw.items()))
    assert answer.status_code == status, answer.text[:300]
    assert status == 200 or told_off(answer)


@pytest.mark.parametrize("number", [200, 5000])
def test_headers_without_end_are_refused_before_us(platform: Any, number: int) -> None:
    """By HAProxy, in words of its own."""
    with platform.client() as client:
        answer = client.get("/v1/models", headers={f"X-H{index}": "x" for index in range(number)})
    assert 400 <= answer.status_code < 500


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
def test_a_wrong_method_is_405(platform: Any, method: str) -> None:
    with platform.client() as client:
        assert client.request(method, CHAT).status_code == 405


@pytest.mark.parametrize(
    "path", ["/v1/%00", "/v1/models/%ff%fe", "/v1/models/..%2f..%2fetc", "/%2e%2e/", "/v1//models"]
)
def test_an_odd_path_is_404(platform: Any, path: str) -> None:
    with platform.client() as client:
        answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["modelyard_code"] == "not_found"
