import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelyard.contract.envelope import Failure, Item
from modelyard.contract.operations import Operation
from modelyard.ingress.app import ROUTES
from modelyard.testing.asgi_client import start
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    BETA_KEY,
    OPS_KEY,
    InMemoryIngress,
    bearer,
)
from modelyard.testing.scripted_transport import Sleep, Step
from modelyard.testing.virtual_time import run_virtual

BodyFor = Callable[..., dict[str, Any]]
ALPHA = bearer(ALPHA_KEY)
every_route = pytest.mark.parametrize(("path", "operation"), ROUTES)


def client(ingress: InMemoryIngress, **headers: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(ingress.app), base_url="http://x", headers=ALPHA | headers
    )


async def posted(
    ingress: InMemoryIngress, path: str, body: Any = None, **options: Any
) -> httpx.Response:
    async with client(ingress) as http:
        return await http.post(path, json=body, **options)


def error_of(response: httpx.Response, operation: Operation | None) -> dict[str, Any]:
    """What both shapes say: code, message, request_id; asserts that the shape is the route's."""
    record: dict[str, Any] = response.json()
    assert response.headers["content-type"] == "application/json"
    if operation is Operation.GENERATE:
        assert set(record) >= {"code", "message", "retryable", "request_id"}
        return record
    assert set(record) == {"error", "detail"} if operation is Operation.RERANK else {"error"}
    error: dict[str, Any] = record["error"]
    return error | {"code": error["modelyard_code"]}


@every_route
async def test_each_route_answers_with_the_models_bytes_and_our_headers(
    path: str, operation: Operation, body_for: BodyFor, unary: Item
) -> None:
    ingress = InMemoryIngress([unary])
    response = await posted(ingress, path, body_for(operation), headers={"x-request-id": "r-1"})
    assert (response.status_code, response.content) == (200, unary.data)
    headers = dict(response.headers)
    assert headers.pop("content-length") == str(len(unary.data))
    version = ingress.transport.calls[0].cell.app
    assert headers == {
        "content-type": "application/json",
        "cache-control": "no-store",
        "x-request-id": "r-1",
        "x-model-version": version,
        "x-rollout-arm": "stable",
    }
    (record,) = ingress.records
    assert (record.route, record.status, record.request_id) == (path, 200, "r-1")
    assert ingress.transport.calls[0].envelope.operation == operation


@every_route
async def test_ignored_fields_are_named(
    path: str, operation: Operation, body_for: BodyFor, unary: Item
) -> None:
    ingress = InMemoryIngress([unary])
    response = await posted(ingress, path, body_for(operation, zebra=1, apple=2))
    if operation is Operation.GENERATE:
        assert error_of(response, operation)["code"] == "invalid_request"
    else:
        assert response.headers["x-ignored-fields"] == "apple, zebra"
        assert ingress.records[0].ignored_fields == ("apple", "zebra")


@pytest.mark.parametrize(("path", "default"), [("/v1/rerank", True), ("/v2/rerank", False)])
@pytest.mark.parametrize("asked", [None, True, False])
async def test_documents_come_back_by_the_routes_default_unless_asked(
    path: str, default: bool, asked: bool | None, body_for: BodyFor, unary: Item
) -> None:
    ingress = InMemoryIngress([unary])
    await posted(ingress, path, body_for(Operation.RERANK, return_documents=asked))
    sent = json.loads(ingress.transport.calls[0].envelope.body)
    assert sent["return_documents"] is (default if asked is None else asked)


@pytest.mark.parametrize("given_id", ["", "two words", "x" * 129])
async def test_a_request_id_that_is_not_well_formed_is_replaced(
    given_id: str, body_for: BodyFor, unary: Item
) -> None:
    ingress = InMemoryIngress([unary])
    response = await posted(
        ingress, "/v1/generate", body_for(Operation.GENERATE), headers={"x-request-id": given_id}
    )
    assert response.headers["x-request-id"].startswith("req_")
    assert ingress.records[0].request_id == response.headers["x-request-id"]


@every_route
@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"authorization": ""}, 401, "unauthenticated"),
        ({"authorization": "Bearer my_x-1_unknown-unknown"}, 401, "unauthenticated"),
        (bearer(OPS_KEY), 403, "forbidden"),
    ],
)
async def test_a_stranger_is_refused_in_the_routes_shape(
    path: str,
    operation: Operation,
    headers: dict[str, str],
    status: int,
    code: str,
    body_for: BodyFor,
) -> None:
    ingress = InMemoryIngress()
    response = await posted(ingress, path, body_for(operation), headers=headers)
    assert response.status_code == status
    error = error_of(response, operation)
    assert (error["code"], error["request_id"]) == (code, response.headers["x-request-id"])
    assert response.headers["x-should-retry"] == "false"
    assert [(r.status, r.code) for r in ingress.records] == [(status, code)]


async def test_a_stranger_is_refused_before_the_body_is_read() -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    ingress = InMemoryIngress()
    async with client(ingress, authorization="Bearer x") as http:
        response = await http.post("/v1/generate", content=never())
    assert response.status_code == 401


async def test_a_tenant_may_use_its_own_models_only(body_for: BodyFor, unary: Item) -> None:
    ingress = InMemoryIngress([unary])
    refused = await posted(
        ingress, "/v1/classify", body_for(Operation.CLASSIFY), headers=bearer(BETA_KEY)
    )
    assert (refused.status_code, refused.json()["error"]["reason"]) == (403, "entitlement")
    answered = await posted(
        ingress, "/v1/embeddings", body_for(Operation.EMBED), headers=bearer(BETA_KEY)
    )
    assert answered.status_code == 200


@every_route
async def test_the_wrong_kind_of_model_names_the_right_route(
    path: str, operation: Operation, body_for: BodyFor
) -> None:
    alias = "intent" if operation is not Operation.CLASSIFY else "chat"
    response = await posted(InMemoryIngress(), path, body_for(operation, model=alias))
    assert response.status_code == 400
    message = error_of(response, operation)["message"]
    assert ("/v1/classify" if alias == "intent" else "/v1/chat/completions") in message


@every_route
async def test_an_unknown_model_is_404(path: str, operation: Operation, body_for: BodyFor) -> None:
    response = await posted(InMemoryIngress(), path, body_for(operation, model="gone"))
    assert response.status_code == 404
    error_of(response, operation)
    if operation is not Operation.GENERATE:
        assert response.json()["error"]["code"] == "model_not_found"


@every_route
async def test_a_model_that_is_not_loaded_says_when_to_come_back(
    path: str, operation: Operation, body_for: BodyFor
) -> None:
    ingress = InMemoryIngress()
    ingress.fleet.update([])
    response = await posted(ingress, path, body_for(operation))
    assert response.status_code == 503
    error_of(response, operation)
    assert response.headers["retry-after"] == "4"
    assert response.headers["retry-after-ms"] == "4000"
    assert response.headers["x-should-retry"] == "true"


@every_route
async def test_a_failure_of_the_replica_has_the_routes_shape(
    path: str, operation: Operation, body_for: BodyFor
) -> None:
    ingress = InMemoryIngress([Failure("overloaded", "full: later", retry_after_s=2.5)])
    response = await posted(ingress, path, body_for(operation))
    assert (response.status_code, response.headers["retry-after"]) == (503, "3")
    assert error_of(response, operation)["message"] == "full: later"


@every_route
async def test_another_method_is_405_and_says_which_are_allowed(
    path: str, operation: Operation
) -> None:
    async with client(InMemoryIngress()) as http:
        response = await http.get(path)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert error_of(response, operation)["code"] == "invalid_request"
    assert response.headers["x-request-id"]


@pytest.mark.parametrize(
    "path", ["/", "/v1/nothing", "/v1/generate/", "/v1//rerank", "/v1/mod\u00e8les"]
)
async def test_an_unknown_route_is_404_in_json(path: str) -> None:
    response = await posted(InMemoryIngress(), path, {})
    assert response.status_code == 404
    assert response.json()["error"]["reason"] == "no_route"
    assert response.headers["x-request-id"]
    assert response.headers["x-should-retry"] == "false"


@every_route
async def test_a_body_that_is_not_json_is_415_and_a_large_one_413(
    path: str, operation: Operation
) -> None:
    ingress = InMemoryIngress()
    async with client(ingress) as http:
        form = await http.post(path, data={"model": "chat"})
        large = await http.post(path, json={"model": "x" * ingress.pipeline.max_body_bytes})
        broken = await http.post(path, content=b"{", headers={"content-type": "application/json"})
    assert [form.status_code, large.status_code, broken.status_code] == [415, 413, 400]
    for response in (form, large, broken):
        assert error_of(response, operation)["code"] == "invalid_request"
    assert [record.status for record in ingress.records] == [415, 413, 400]


async def test_a_rerank_error_also_carries_detail(body_for: BodyFor) -> None:
    response = await posted(
        InMemoryIngress(), "/v2/rerank", body_for(Operation.RERANK, documents=None)
    )
    record = response.json()
    assert record["detail"] == record["error"]["message"]


@every_route
async def test_a_bug_is_500_in_the_routes_shape_and_leaks_nothing(
    path: str, operation: Operation, body_for: BodyFor, caplog: pytest.LogCaptureFixture
) -> None:
    ingress = InMemoryIngress([LookupError("details")])
    response = await posted(ingress, path, body_for(operation))
    assert response.status_code == 500
    assert "details" not in response.text
    assert error_of(response, operation)["code"] == "internal"
    assert [record.status for record in ingress.records] == [500]
    assert response.headers["x-request-id"] in caplog.text


async def test_a_bug_before_the_dispatch_is_500_too(
    body_for: BodyFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingress = InMemoryIngress()

    def broken(version: str) -> None:
        raise LookupError("details")

    monkeypatch.setattr(ingress.fleet, "describe", broken)
    response = await posted(ingress, "/v1/generate", body_for(Operation.GENERATE))
    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "details" not in response.text
    assert [(r.status, r.code) for r in ingress.records] == [(500, "internal")]


@every_route
async def test_without_a_table_every_route_says_come_back(
    path: str, operation: Operation, body_for: BodyFor
) -> None:
    ingress = InMemoryIngress()
    ingress.pipeline.table = None
    response = await posted(ingress, path, body_for(operation))
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    error_of(response, operation)


@pytest.mark.parametrize("leave", ["hang_up", "cancel"])
def test_a_client_that_leaves_stops_a_unary_call(
    leave: str, body_for: BodyFor, unary: Item
) -> None:
    async def main() -> None:
        script: list[Step] = [Sleep(5), unary]
        ingress = InMemoryIngress(script)
        exchange = start(
            ingress.app, "POST", "/v1/generate", body=body_for(Operation.GENERATE), headers=ALPHA
        )
        for _ in range(20):  # until the replica works
            await asyncio.sleep(0)
        await getattr(exchange, leave)()
        assert ingress.transport.calls[0].stopped
        assert [(r.status, r.code) for r in ingress.records] == [(499, "cancelled")]

    run_virtual(main())


async def test_a_client_that_leaves_while_it_sends_is_no_bug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ingress = InMemoryIngress()
    messages = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        return None

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/generate",
        "query_string": b"",
        "headers": [(b"authorization", ALPHA["authorization"].encode())],
    }
    await ingress.app(scope, receive, send)
    assert [(r.status, r.code) for r in ingress.records] == [(499, "cancelled")]
    assert caplog.text == ""


def test_a_body_that_trickles_is_given_up() -> None:
    async def main() -> None:
        ingress = InMemoryIngress()

        async def receive() -> Any:
            await asyncio.sleep(5)
            return {"type": "http.request", "body": b" ", "more_body": True}

        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/generate",
            "query_string": b"",
            "headers": [(b"authorization", ALPHA["authorization"].encode())],
        }
        await ingress.app(scope, receive, send)
        assert sent[0]["status"] == 504
        assert [r.reason for r in ingress.records] == ["slow_body"]

    run_virtual(main())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    route=st.sampled_from(ROUTES),
    changes=st.dictionaries(
        st.sampled_from(["model", "messages", "prompt", "input", "documents", "query"])
        | st.sampled_from(["n", "stream", "deadline_ms", "max_tokens", "max_output_tokens"])
        | st.text(max_size=6),
        VALUES,
        max_size=3,
    ),
)
def test_no_body_makes_a_bug(
    route: tuple[str, Operation], changes: dict[str, Any], body_for: BodyFor
) -> None:
    async def main() -> None:
        ingress = InMemoryIngress([Failure("overloaded", "full: later")])
        raw = json.dumps(body_for(route[1]) | changes).encode()
        exchange = start(ingress.app, "POST", route[0], body=raw, headers=ALPHA)
        await exchange.finished()
        assert exchange.broken is None
        assert exchange.status in (400, 403, 404, 503)
        assert [record.status for record in ingress.records] == [exchange.status]

    run_virtual(main())
