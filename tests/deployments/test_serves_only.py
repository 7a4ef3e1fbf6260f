"""What only Serve may call: it can, a handle cannot, on the classes that are deployed."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import ray.cloudpickle
from ray.serve._private.http_util import ASGIAppReplicaWrapper
from ray.serve._private.replica import UserCallableWrapper
from ray.serve.context import _RequestContext, _serve_request_context

from deployments import classifier, embedder, generator, ingress, reranker
from deployments.serves_only import serves_only
from modelyard.contract.errors import Forbidden
from modelyard.telemetry.request_log import RequestLog
from modelyard.testing.in_memory import InMemoryIngress

DEPLOYED = [
    module.deployment.func_or_class for module in (classifier, embedder, generator, reranker)
]
DOOR_CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("__init__", (None,)),
    ("__setattr__", ("_shell", None)),
    ("__delattr__", ("_shell",)),
    ("reconfigure", ({},)),
]
INGRESS_CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("__init__", ()),
    ("__del__", ()),
    ("__setattr__", ("_pipeline", None)),
    ("__delattr__", ("_pipeline",)),
    ("__serve_build_asgi_app__", ()),
    ("_set_asgi_app", (None,)),
    ("_run_asgi_lifespan_startup", ()),
    ("reconfigure", ({},)),
]


@contextmanager
def in_a_request() -> Iterator[None]:
    """As Serve runs what a handle calls."""
    token = _serve_request_context.set(_RequestContext(request_id="r-1"))  # type: ignore[arg-type]
    try:
        yield
    finally:
        _serve_request_context.reset(token)


def named_by_handle(replica: Any, method: str) -> Any:
    """What Serve finds under the name of a handle's call."""
    serve = UserCallableWrapper.__new__(UserCallableWrapper)
    serve._callable, serve._is_function, serve._cached_user_method_info = replica, False, {}
    return serve.get_user_method_info(method).callable


async def result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class Replica:
    """Remembers what was called."""

    def __init__(self) -> None:
        self.seen = ["init"]

    async def reconfigure(self, user_config: Any) -> None:
        self.seen.append("reconfigure")

    def stop(self) -> None:
        self.seen.append("stop")

    def answer(self) -> str:
        return "answer"


@pytest.fixture
def ingress_replica(tmp_path: Path) -> Iterator[Any]:
    """The deployed class without its `__init__`, which asks Serve who it is."""
    deployed: Any = ingress.deployment.func_or_class
    # Without its `__del__` too: the interpreter would call that one and never await it.
    made: Any = type("Quiet", (deployed,), {"__del__": lambda self: None})
    replica = object.__new__(made)
    log = RequestLog(tmp_path, "r")
    replica._log, replica._pipeline = log, InMemoryIngress().pipeline
    replica._scraper = replica._control = replica._tracing = None
    replica._background = [object()]  # it follows board and control already
    yield replica
    log.close()


@pytest.mark.parametrize("made", DEPLOYED)
@pytest.mark.parametrize(("method", "arguments"), DOOR_CALLS)
async def test_a_handle_cannot_call_what_is_serves_on_a_model(
    made: Any, method: str, arguments: tuple[Any, ...]
) -> None:
    replica = object.__new__(made)
    replica._shell = shell = object()
    with in_a_request(), pytest.raises(Forbidden):
        await result(named_by_handle(replica, method)(*arguments))
    assert replica._shell is shell


@pytest.mark.parametrize(("method", "arguments"), INGRESS_CALLS)
async def test_a_handle_cannot_call_what_is_serves_on_the_ingress(
    ingress_replica: Any, method: str, arguments: tuple[Any, ...]
) -> None:
    made: Any = ingress.deployment.func_or_class
    pipeline = ingress_replica._pipeline
    with in_a_request(), pytest.raises(Forbidden):
        await result(getattr(made, method)(ingress_replica, *arguments))
    assert ingress_replica._pipeline is pipeline
    assert not ingress_replica._log._stop.is_set()
    assert not hasattr(ingress_replica, "_asgi_app")


async def test_serve_itself_starts_configures_and_stops_the_ingress(ingress_replica: Any) -> None:
    made: Any = ingress.deployment.func_or_class
    assert issubclass(made, ASGIAppReplicaWrapper)
    app = ingress_replica.__serve_build_asgi_app__()
    ingress_replica._set_asgi_app(app)
    await ingress_replica._run_asgi_lifespan_startup()
    assert ingress_replica.app is app
    await made.__del__(ingress_replica)
    assert ingress_replica._log._stop.is_set()


async def test_a_class_keeps_its_other_methods_and_survives_the_way_to_a_replica() -> None:
    local = type("Local", (Replica,), {})  # pickled by value, as Serve's wrapper is
    made = pickle.loads(ray.cloudpickle.dumps(serves_only(local, "stop")))  # type: ignore[no-untyped-call]
    replica = made()
    await replica.reconfigure({})
    replica.stop()
    assert replica.seen == ["init", "reconfigure", "stop"]
    assert inspect.iscoroutinefunction(replica.reconfigure)
    assert list(inspect.signature(replica.reconfigure).parameters) == ["user_config"]
    with in_a_request():
        assert replica.answer() == "answer"
        for call in (lambda: replica.reconfigure({}), replica.stop, replica.__init__):
            with pytest.raises(Forbidden, match="never by handle"):
                await result(call())
    assert replica.seen == ["init", "reconfigure", "stop"]
