"""The router shim, with the parts of Serve's records that it reads."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ray.serve._private.common import DeploymentHandleSource, DeploymentID, ReplicaID
from ray.serve._private.request_router.common import PendingRequest
from ray.serve.handle import DeploymentHandle
from ray.serve.request_router import RunningReplica

from cluster import replica_router
from cluster.replica_router import AffinityRouter, key_of, route_by_affinity
from modelyard.contract.errors import Internal

DEPLOYMENT = DeploymentID("Generator", "gen@1.0.0")


def replica(name: str, limit: int = 8) -> RunningReplica:
    identifier = ReplicaID(name, DEPLOYMENT)
    return cast(RunningReplica, SimpleNamespace(replica_id=identifier, max_ongoing_requests=limit))


def request(key: str | None) -> PendingRequest:
    arguments = [] if key is None else [SimpleNamespace(affinity=key)]
    return PendingRequest(args=arguments, kwargs={}, metadata=cast(Any, None))


@pytest.fixture
async def router() -> AffinityRouter:
    made = AffinityRouter(
        DEPLOYMENT, DeploymentHandleSource.REPLICA, use_replica_queue_len_cache=True
    )
    made.initialize_state()
    return made


REPLICAS = [replica(name) for name in ("a", "b", "c", "d")]


async def first(router: AffinityRouter, pending: PendingRequest) -> str:
    return (await router.choose_replicas(REPLICAS, pending))[0][0].replica_id.unique_id


async def sent(router: AffinityRouter, key: str) -> str:
    """A request taken as far as Serve takes it before its answer comes."""
    pending = request(key)
    name = await first(router, pending)
    pending.future.set_result(None)
    router.on_send_request(ReplicaID(name, DEPLOYMENT))
    await asyncio.sleep(0)
    return name


async def test_one_key_is_one_replica_and_all_the_others_stand_behind_it(
    router: AffinityRouter,
) -> None:
    ranks = await router.choose_replicas(REPLICAS, request("k"))
    assert [len(rank) for rank in ranks] == [1, 3]
    again = await router.choose_replicas(REPLICAS[::-1], request("k"))
    assert again[0] == ranks[0]


async def test_another_process_with_other_eyes_agrees(router: AffinityRouter) -> None:
    other = AffinityRouter(DEPLOYMENT, DeploymentHandleSource.REPLICA)
    other.initialize_state()
    for key in map(str, range(20)):
        assert await first(router, request(key)) == await first(other, request(key))


async def test_keys_are_spread(router: AffinityRouter) -> None:
    found = set()
    for n in range(60):
        pending = request(str(n))
        found.add(await first(router, pending))
        pending.future.cancel()
        await asyncio.sleep(0)
    assert found == {"a", "b", "c", "d"}


async def test_a_burst_in_one_turn_of_the_loop_sees_itself(router: AffinityRouter) -> None:
    burst = [request("hot") for _ in range(16)]
    names = [await first(router, pending) for pending in burst]
    assert max(names.count(name) for name in set(names)) < 16
    assert len(set(names)) > 1
    for pending in burst:
        pending.future.cancel()  # their callers left
    await asyncio.sleep(0)
    assert await first(router, request("hot")) == names[0]


async def test_the_only_replica_is_taken_without_a_count(router: AffinityRouter) -> None:
    waiting = request("hot")
    assert await router.choose_replicas(REPLICAS[:1], waiting) == [REPLICAS[:1]]
    assert not router._sending
    assert waiting.routing_context.should_backoff


async def test_a_request_that_waits_is_one_however_often_serve_asks(router: AffinityRouter) -> None:
    waiting = request("hot")
    names = {await first(router, waiting) for _ in range(100)}
    assert len(names) == 1, "its own count moves with it, and drives nobody away"
    assert sum(router._sending.values()) == 1
    waiting.future.cancel()
    await asyncio.sleep(0)
    assert not router._sending
    assert not router._aimed


async def test_what_was_sent_counts_until_it_is_done(router: AffinityRouter) -> None:
    names = [await sent(router, "hot") for _ in range(16)]
    assert len(set(names)) > 1
    for name in names:
        router.on_request_completed(ReplicaID(name, DEPLOYMENT), "r")
        router.decrement_queue_len_cache(ReplicaID(name, DEPLOYMENT))
    assert await sent(router, "hot") == names[0]


async def test_what_a_replica_says_of_others_requests_counts(router: AffinityRouter) -> None:
    alone = await first(router, request("k"))
    router.on_new_queue_len_info(ReplicaID(alone, DEPLOYMENT), 7)
    assert await first(router, request("k")) != alone


async def test_a_call_without_key_goes_to_the_less_used_of_two(router: AffinityRouter) -> None:
    for name in "abc":
        router.on_new_queue_len_info(ReplicaID(name, DEPLOYMENT), 7)
    router.on_new_queue_len_info(ReplicaID("d", DEPLOYMENT), 0)
    names = []
    for _ in range(40):
        pending = request("")
        names.append(await first(router, pending))
        pending.future.cancel()
        await asyncio.sleep(0)
    assert names.count("d") > 10  # half of the draws hold it


async def test_a_completion_too_many_makes_no_negative_load(router: AffinityRouter) -> None:
    router.on_request_completed(ReplicaID("a", DEPLOYMENT), "r")
    assert router._load(ReplicaID("a", DEPLOYMENT)) == 0


async def test_a_full_deployment_is_asked_with_a_back_off(router: AffinityRouter) -> None:
    pending = request("k")
    await router.choose_replicas(REPLICAS, pending)
    assert pending.routing_context.should_backoff


async def test_a_call_that_is_not_ours_has_no_key() -> None:
    assert key_of(request(None)) == ""
    assert key_of(PendingRequest(["text"], {}, cast(Any, None))) == ""


async def test_the_router_is_there_before_serve_names_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With Serve's own create_router replaced, which needs a controller."""

    class Made:
        def __init__(self, **arguments: Any) -> None:
            self.request_router = arguments["request_router_class"](
                arguments["deployment_id"], DeploymentHandleSource.REPLICA
            )
            self._asyncio_router = self

    monkeypatch.setattr(replica_router, "create_router", Made)
    handle: DeploymentHandle[Any] = DeploymentHandle("Generator", "gen@1.0.0")
    route_by_affinity(handle)
    one, other = handle.options(stream=True), handle.options(method_name="call")
    made = one._init_router()
    assert isinstance(cast(Any, made).request_router, AffinityRouter)
    assert other._init_router() is made


async def test_a_serve_that_takes_another_router_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = SimpleNamespace(_asyncio_router=SimpleNamespace(request_router=None))
    monkeypatch.setattr(replica_router, "create_router", lambda **_: wrong)
    handle: DeploymentHandle[Any] = DeploymentHandle("Generator", "gen@1.0.0")
    route_by_affinity(handle)
    with pytest.raises(Internal, match="did not take our router"):
        handle.options(stream=True)
