"""Bodies that nobody sends by mistake: each is answered or refused with a type, and never a 500."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from modelyard.contract.operations import Operation
from modelyard.ingress.app import ROUTES
from modelyard.ingress.body import READ_WITHIN_S
from modelyard.ingress.openapi import request_body
from modelyard.testing.answering_transport import AnsweringTransport
from modelyard.testing.asgi_client import Exchange, start
from modelyard.testing.in_memory import ALPHA_KEY, InMemoryIngress, bearer
from modelyard.testing.virtual_time import run_virtual

POSTS: Final = [pytest.param(path, operation, id=path) for path, operation in ROUTES]
MIB: Final = 1 << 20
# One for all examples: building an app costs more than asking it.
TRANSPORT: Final = AnsweringTransport()
INGRESS: Final = InMemoryIngress(transport=TRANSPORT)

NESTED_NAMES: Final = (
    *("type", "role", "content", "text", "tool_calls", "function", "name", "parameters"),
    *("json_schema", "schema", "properties", "anyOf", "$ref", "regex", "choice", "arguments"),
)
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.sampled_from([2**63, 10**400, -(10**400)])
TEXTS = st.text(max_size=8) | st.sampled_from(["", "\x00", "user", "text", "auto", "float", "{"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS, inner, max_size=3)
        | st.fixed_dictionaries({}, optional=dict.fromkeys(NESTED_NAMES, inner))
    ),
    max_leaves=10,
)


def told_off(answer: Exchange, operation: Operation) -> bool:
    """Whether it is a refusal in the shape that the route's clients read."""
    record = answer.json()
    error = record if operation is Operation.GENERATE else record["error"]
    code = error["code"] if operation is Operation.GENERATE else error["modelyard_code"]
    return (
        400 <= (answer.status or 0) < 500
        and code in ("invalid_request", "not_found")
        and answer.headers["x-should-retry"] == "false"
        and error["retryable"] is False
        and error["request_id"] == answer.headers["x-request-id"]
        and 0 < len(error["message"]) < 500
        and (operation is not Operation.RERANK or record["detail"] == error["message"])
    )


async def asked(
    ingress: InMemoryIngress, path: str, body: Any, headers: dict[str, str] | None = None
) -> Exchange:
    return await start(
        ingress.app, "POST", path, body=body, headers=bearer(ALPHA_KEY) | (headers or {})
    ).finished()


def names_of(operation: Operation) -> list[str]:
    content = request_body(operation)["requestBody"]["content"]
    return sorted(content["application/json"]["schema"]["properties"])


@pytest.mark.parametrize(("path", "operation"), POSTS)
# The fixture is a pure function.
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_json_in_any_known_field_is_answered_or_refused_before_a_replica(
    path: str, operation: Operation, data: st.DataObject, body_for: Callable[..., dict[str, Any]]
) -> None:
    names = [*names_of(operation), "priority", "chat_template_kwargs", "guided_json", "an unknown"]
    names.remove("model")
    changes = data.draw(st.dictionaries(st.sampled_from(names), JSON, min_size=1, max_size=3))
    before = len(TRANSPORT.calls)
    answer = asyncio.run(asked(INGRESS, path, body_for(operation) | changes))
    assert (answer.status == 200) == (len(TRANSPORT.calls) == before + 1)
    assert answer.status == 200 or told_off(answer, operation)


@pytest.mark.parametrize(("path", "operation"), POSTS)
@given(body=JSON)
@settings(max_examples=20)
@example(body={"model": "chat\x00"})
@example(body={"model": ["chat"]})
@example(body={"model": "x" * 10_000})
def test_any_json_as_the_whole_body_is_refused(path: str, operation: Operation, body: Any) -> None:
    before = len(TRANSPORT.calls)
    answer = asyncio.run(asked(INGRESS, path, body))
    assert told_off(answer, operation)
    assert len(TRANSPORT.calls) == before


RAW: Final[dict[str, bytes]] = {
    "nothing": b"",
    "NaN": b'{"model": "chat", "temperature": NaN}',
    "Infinity": b'{"model": "chat", "temperature": -Infinity}',
    "invalid UTF-8": b'{"model": "chat", "user": "\xff\xfe"}',
    "half a surrogate pair": b'{"model": "chat", "user": "\\ud800"}',
    "a NUL byte": b'{"model": "chat\x00"}',
    "more digits than int() reads": b'{"model": "chat", "n": 1' + b"0" * 100_000 + b"}",
    "objects in objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "lists in lists": b'{"model": "chat", "messages": ' + b"[" * 500_000,
    "many keys": json.dumps({f"k{i}": i for i in range(200_000)}).encode(),
    "UTF-16": '{"model": "chat"}'.encode("utf-16"),
    "two documents": b'{"model": "chat"}{"model": "chat"}',
}


@pytest.mark.parametrize(("path", "operation"), POSTS)
@pytest.mark.parametrize("raw", RAW.values(), ids=RAW)
async def test_bytes_that_break_parsers_are_refused(
    path: str, operation: Operation, raw: bytes
) -> None:
    transport = AnsweringTransport()
    assert told_off(await asked(InMemoryIngress(transport=transport), path, raw), operation)
    assert transport.calls == []


ENDLESS: Final = 10**4000
FIELDS: Final[dict[str, dict[str, Any]]] = {
    "n": {"n": ENDLESS},
    "negative n": {"n": -1},
    "max_tokens": {"max_tokens": ENDLESS},
    "top_logprobs": {"top_logprobs": ENDLESS},
    "logit_bias of a vocabulary": {"logit_bias": {str(token): 1 for token in range(50_000)}},
    "logit_bias without end": {"logit_bias": {"1": ENDLESS}},
    "stop": {"stop": ["x"] * 10_000},
    "stop_token_ids": {"stop_token_ids": [ENDLESS]},
    "tools": {"tools": [{"type": "function", "function": {"name": "f"}}] * 10_000},
    "messages": {"messages": [{"role": "user", "content": "x"}] * 50_000},
    "1e999": {"temperature": float("inf")},
}


@pytest.mark.parametrize("changes", FIELDS.values(), ids=FIELDS)
async def test_absurd_fields_are_refused_by_name(
    changes: dict[str, Any], body_for: Callable[..., dict[str, Any]]
) -> None:
    transport = AnsweringTransport()
    raw = json.dumps(body_for(Operation.CHAT) | changes).replace("Infinity", "1e999").encode()
    answer = await asked(InMemoryIngress(transport=transport), "/v1/chat/completions", raw)
    assert told_off(answer, Operation.CHAT)
    assert transport.calls == []


async def test_of_a_key_given_twice_one_counts_for_checks_and_engine_alike(
    body_for: Callable[..., dict[str, Any]],
) -> None:
    transport = AnsweringTransport()
    raw = json.dumps(body_for(Operation.CHAT))[:-1].encode() + b', "n": 900, "n": 2}'
    answer = await asked(InMemoryIngress(transport=transport), "/v1/chat/completions", raw)
    assert answer.status == 200
    assert json.loads(transport.calls[0].envelope.body)["n"] == 2


@pytest.mark.parametrize(("path", "operation"), POSTS)
@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip", "identity, gzip", "\x00"])
async def test_a_compressed_body_is_refused_unread(
    path: str, operation: Operation, encoding: str
) -> None:
    bomb = gzip.compress(b'{"a": "' + b" " * (64 * MIB) + b'"}', compresslevel=1)
    answer = await asked(InMemoryIngress(), path, bomb, {"content-encoding": encoding})
    assert answer.status == 415
    assert told_off(answer, operation)


async def test_a_gzip_bomb_is_never_inflated() -> None:
    """Nor where its encoding is not announced."""
    bomb = gzip.compress(b" " * (64 * MIB), compresslevel=1)
    tracemalloc.start()
    try:
        for headers in ({}, {"content-encoding": "gzip"}):
            answer = await asked(InMemoryIngress(), "/v1/embeddings", bomb, headers)
            assert told_off(answer, Operation.EMBED)
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


async def test_identity_is_no_compression(body_for: Callable[..., dict[str, Any]]) -> None:
    ingress = InMemoryIngress(transport=AnsweringTransport())
    headers = {"content-encoding": "Identity"}
    assert (
        await asked(ingress, "/v1/embeddings", body_for(Operation.EMBED), headers)
    ).status == 200


@pytest.mark.parametrize("headers", [{}, {"content-length": str(100 * MIB)}])
async def test_a_body_of_100_mib_is_refused_long_before_its_end(headers: dict[str, str]) -> None:
    sent = 0

    async def flood() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += MIB
            yield b" " * MIB

    answer = await asked(InMemoryIngress(), "/v1/embeddings", flood(), headers)
    assert answer.status == 413
    assert told_off(answer, Operation.EMBED)
    assert sent <= (0 if headers else 5 * MIB)


def test_a_client_that_sends_a_byte_a_second_is_given_up() -> None:
    async def trickle() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(1)
            yield b" "

    async def main() -> tuple[Exchange, float]:
        now = asyncio.get_running_loop().time
        answer = await asked(InMemoryIngress(now=now), "/v1/embeddings", trickle())
        return answer, now()

    answer, took_s = run_virtual(main())
    assert answer.status == 504
    assert answer.json()["error"]["reason"] == "slow_body"
    assert answer.headers["x-should-retry"] == "false"
    assert took_s == READ_WITHIN_S
