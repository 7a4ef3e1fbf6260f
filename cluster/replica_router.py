"""Serve's request router of the models: a shim around the pure choice, one in each ingress."""

from __future__ import annotations

import random
from typing import Any

from ray.serve._private.default_impl import create_router
from ray.serve.request_router import (
    PendingRequest,
    ReplicaID,
    RequestRouter,
    RunningReplica,
)

from modelyard.contract.errors import Internal
from modelyard.routing.choose import Candidate, choose


def route_by_affinity(handle: Any) -> None:
    """Give a new handle this router. The handles made from it by `options` share it.

    By the handle and not by the deployment's request_router_config, where it belongs: in HAProxy
    mode Serve 2.60 refuses one for an app's only deployment, which HAProxy would call without it.
    Ours cannot be called so, but Serve does not know. Turned down: a second deployment in front of
    each model, a process more.
    """
    handle._create_router = _create_router


def _create_router(**arguments: Any) -> Any:
    """Serve's own, with another class. Raises Internal when Serve put its own in place."""
    made: Any = create_router(**arguments, request_router_class=AffinityRouter)
    # Made now: the deployment's config, once it arrives, would name Serve's class for it.
    if not isinstance(made._asyncio_router.request_router, AffinityRouter):
        raise Internal("Serve did not take our router", reason="router")
    return made


class AffinityRouter(RequestRouter):
    """The key is the `affinity` of the envelope, the call's argument. A handle's session_id would
    need a copy of the handle for each request, and this costs nothing.

    The load of a replica is the most of what it last said, which counts other callers too, and of
    what this process has there; plus what it is about to send, which Serve counts a turn of the
    loop later: a burst in one turn would all see the same empty replica.
    """

    def initialize_state(self, **_: Any) -> None:
        self._random = random.Random()
        self._sent: dict[ReplicaID, int] = {}
        self._sending: dict[ReplicaID, int] = {}
        self._aimed: dict[Any, ReplicaID] = {}

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """The choice alone, then all the others: Serve takes the shortest queue among those."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True  # else a full cell is asked in a spin
        if len(candidate_replicas) == 1:
            return [candidate_replicas]
        candidates = [
            Candidate(
                one.replica_id.unique_id, self._load(one.replica_id), one.max_ongoing_requests
            )
            for one in candidate_replicas
        ]
        choice = choose(candidates, key_of(pending_request), self._random)
        chosen = candidate_replicas[choice.chosen]
        self._count_sending(chosen.replica_id, pending_request)
        others = [one for one in candidate_replicas if one is not chosen]
        return [[chosen], others] if others else [[chosen]]

    def on_send_request(self, replica_id: ReplicaID) -> None:
        super().on_send_request(replica_id)
        self._sent[replica_id] = self._sent.get(replica_id, 0) + 1

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        """Serve calls it once for each request sent, rejected ones too."""
        _count_down(self._sent, replica_id)

    def _load(self, replica_id: ReplicaID) -> int:
        said = self.replica_queue_len_cache.get(replica_id) or 0
        return max(said, self._sent.get(replica_id, 0)) + self._sending.get(replica_id, 0)

    def _count_sending(self, replica_id: ReplicaID, pending_request: PendingRequest) -> None:
        """Once, until the request has a replica, whichever it is, or its caller left. Serve asks
        again at each back-off: the count then moves."""
        waiting = pending_request.future
        before = self._aimed.get(waiting)
        self._aimed[waiting] = replica_id
        self._sending[replica_id] = self._sending.get(replica_id, 0) + 1
        if before is not None:
            _count_down(self._sending, before)
            return
        waiting.add_done_callback(lambda _: _count_down(self._sending, self._aimed.pop(waiting)))


def key_of(pending_request: PendingRequest) -> str:
    """The affinity key of a call; "" for one that is not ours or has none."""
    arguments = pending_request.args
    return getattr(arguments[0], "affinity", "") if arguments else ""


def _count_down(counts: dict[ReplicaID, int], replica_id: ReplicaID) -> None:
    """A count of 0 goes: replicas come and go, and a handle lives as long as the ingress."""
    left = counts.get(replica_id, 0) - 1
    if left > 0:
        counts[replica_id] = left
    else:
        counts.pop(replica_id, None)
