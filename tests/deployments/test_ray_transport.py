"""Ray's errors as ours, and a call or stream over a handle that is not Ray's."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from ray import serve
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    OwnerDiedError,
    RayActorError,
    RayTaskError,
    TaskCancelledError,
    WorkerCrashedError,
)
from ray.serve._private.common import DeploymentID
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    ReplicaUnavailableError,
    RequestCancelledError,
)

from deployments.ray_transport import RayTransport, from_ray
from modelyard.contract.envelope import Answer, Envelope, Item, Usage
from modelyard.contract.errors import Internal, Overloaded, ReplicaFailed, RequestError
from modelyard.routing.pool import Cell

CELL = Cell("gen@1.0.0", "Generator")
ENVELOPE = Envelope(
    "claim", "gen@1.0.0", "chat", b"{}", False, 1000, "interactive", "r-1", "id", "chat"
)
ITEMS = [Item(b"a", 1), Item(b"b", 1, Usage(1, 2))]
DEAD: list[Exception] = [
    RayActorError(),
    ActorDiedError(),
    ActorUnavailableError("the node is gone", None),
    ObjectLostError("ab", None, "call site"),
    OwnerDiedError("ab", None, "call site"),
    OutOfMemoryError("the node is out of memory"),  # type: ignore[no-untyped-call]
    NodeDiedError("the node died"),  # type: ignore[no-untyped-call]
    WorkerCrashedError(),
    ReplicaUnavailableError("r-1"),
]


def task_error(cause: Exception) -> Exception:
    """As Ray raises it at the caller: of the cause's class too."""
    as_ray: Any = RayTaskError
    words = f"Traceback: {cause!r}"
    error = as_ray("stream", words, cause, "replica", 1, "127.0.0.1").as_instanceof_cause()
    return error  # type: ignore[no-any-return]


def named(errors: list[Exception]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("error", errors, ids=lambda error: type(error).__name__)


class Response:
    """What a handle's `remote` gives: awaited for a call, iterated for a stream."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.cancelled = 0

    def __await__(self) -> Generator[Any, None, Answer]:
        yield from ()
        if self._error is not None:
            raise self._error
        return ITEMS[-1]

    async def __aiter__(self) -> AsyncGenerator[Answer]:
        yield ITEMS[0]
        if self._error is not None:
            raise self._error
        yield ITEMS[1]

    def cancel(self) -> None:
        self.cancelled += 1


class Handle:
    def __init__(self, error: Exception | None = None) -> None:
        self.response = Response(error)
        self.options_given: list[dict[str, Any]] = []

    def options(self, **options: Any) -> Handle:
        self.options_given.append(options)
        return self

    def remote(self, envelope: Envelope) -> Response:
        assert envelope is ENVELOPE
        return self.response


def over(handle: Handle, monkeypatch: pytest.MonkeyPatch) -> RayTransport:
    def handle_of(deployment: str, app_name: str, **_: Any) -> Handle:
        assert (deployment, app_name) == (CELL.deployment, CELL.app)
        return handle

    monkeypatch.setattr(serve, "get_deployment_handle", handle_of)
    return RayTransport()


@named(DEAD)
def test_whatever_dies_the_replica_failed_and_the_call_may_be_retried(error: Exception) -> None:
    ours = from_ray(error)
    assert isinstance(ours, ReplicaFailed)
    assert (ours.reason, ours.retryable) == ("replica_died", True)


def test_a_full_queue_is_overload_with_a_time_to_come_back() -> None:
    ours = from_ray(BackPressureError(num_queued_requests=8, max_queued_requests=8))
    assert isinstance(ours, Overloaded)
    assert (ours.reason, ours.retry_after_s) == ("queue_full", 1)


def test_an_app_that_failed_to_deploy_is_not_loaded() -> None:
    ours = from_ray(DeploymentUnavailableError(DeploymentID("Generator", "gen@1.0.0")))
    assert isinstance(ours, Overloaded)
    assert (ours.reason, ours.retry_after_s) == ("not_loaded", 30)


@named([RequestCancelledError("r-1"), TaskCancelledError()])
def test_a_call_cancelled_inside_the_cluster_says_so(error: Exception) -> None:
    ours = from_ray(error)
    assert isinstance(ours, ReplicaFailed)
    assert ours.reason == "cancelled"


def test_an_exception_that_a_shell_let_out_is_a_bug_which_is_logged_and_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, logger="modelyard.transport"):
        ours = from_ray(task_error(KeyError("a secret of the shell")))
    assert isinstance(ours, Internal)
    assert not ours.retryable
    assert "secret" not in ours.message
    assert "a secret of the shell" in caplog.text


def test_back_pressure_that_comes_wrapped_is_still_overload() -> None:
    assert isinstance(from_ray(task_error(BackPressureError(8, 8))), Overloaded)


async def test_a_call_answers_and_cancels_what_it_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Handle()
    assert await over(handle, monkeypatch).call(CELL, ENVELOPE) == ITEMS[-1]
    assert handle.response.cancelled == 1


async def test_a_stream_gives_its_items_and_cancels_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handle = Handle()
    assert [item async for item in over(handle, monkeypatch).stream(CELL, ENVELOPE)] == ITEMS
    assert handle.response.cancelled == 1


async def test_a_stream_that_is_left_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Handle()
    items = over(handle, monkeypatch).stream(CELL, ENVELOPE)
    assert await anext(items) == ITEMS[0]
    assert handle.response.cancelled == 0
    await items.aclose()
    assert handle.response.cancelled == 1


@named([*DEAD, BackPressureError(8, 8), RequestCancelledError("r-1"), TaskCancelledError()])
async def test_no_error_of_ray_leaves_the_transport(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = Handle(error)
    transport = over(handle, monkeypatch)
    with pytest.raises(RequestError) as caught:
        await transport.call(CELL, ENVELOPE)
    assert caught.value.__cause__ is error
    items = transport.stream(CELL, ENVELOPE)
    assert await anext(items) == ITEMS[0]
    with pytest.raises(RequestError):
        await anext(items)
    assert handle.response.cancelled == 2


async def test_a_cells_handles_are_made_once_one_for_each_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handle = Handle()
    transport = over(handle, monkeypatch)
    for _ in range(2):
        await transport.call(CELL, ENVELOPE)
        assert [item async for item in transport.stream(CELL, ENVELOPE)] == ITEMS
    pickled = {"request_serialization": "pickle", "response_serialization": "pickle"}
    assert handle.options_given == [
        pickled | {"stream": False, "method_name": "call"},
        pickled | {"stream": True, "method_name": "stream"},
    ]
