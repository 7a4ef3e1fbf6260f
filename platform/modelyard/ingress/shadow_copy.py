"""A copy of a request for a candidate version, and the tap on the request that it copies."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from modelyard.contract.envelope import Item
from modelyard.contract.operations import Operation
from modelyard.ingress.charge import CLIENT_GONE
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.shadow_call import SHADOW, lane_of_target, plain_route
from modelyard.ingress.shadow_pair import Side
from modelyard.routing.affinity import affinity_key
from modelyard.routing.arms import CANARY
from modelyard.routing.constraints import Surroundings, open_pool
from modelyard.routing.resolve import Target
from modelyard.telemetry.request_log import RequestRecord
from modelyard.tenancy.callers import Caller

MAX_REQUEST_ID: Final = 120  # with what is added, an id that the wire allows


class Copy:
    """One copy under way, and the tap on the request that it copies."""

    task: asyncio.Task[str]

    def __init__(self, prepared: Prepared, candidate: Target, now: Callable[[], float]) -> None:
        self.original = Side(prepared, now())
        self.original_ended = asyncio.Event()
        self.candidate = candidate
        self.cut_for = ""
        self.holds_slot = True  # or is about to
        tenant = prepared.caller.claim.tenant
        self.lanes = tuple(lane_of_target(one, tenant) for one in (prepared.target, candidate))
        self._version = prepared.target.version
        self._now = now

    def item(self, item: Item) -> None:
        if not self.task.done():
            self.original.take(item, self._now())

    def ended(self, prepared: Prepared) -> None:
        if prepared.record.status == CLIENT_GONE:
            self.cut("left")
        elif prepared.record.version != self._version:
            self.cut("moved")
        elif self.original.shed:
            self.cut("shed")
        self.original_ended.set()

    def cut(self, why: str) -> None:
        self.cut_for = self.cut_for or why
        self.task.cancel()


def candidate_of(prepared: Prepared, pipeline: Pipeline) -> Target | None:
    """Where a copy would go: region and entitlement are the request's, checked for its draw. None:
    no replica of the same kind is ready in the cells of its tenant."""
    target, fleet = prepared.target, pipeline.fleet
    version = target.route.canary
    description = None if version is None else fleet.describe(version)
    if version is None or description is None:
        return None
    around = Surroundings(pipeline.the_table(), fleet, pipeline.router.steering)
    pool = open_pool(version, prepared.caller.claim.tenant, target.route, around)
    if description.kind is not target.description.kind or not pool.is_ready:
        return None
    return replace(
        target,
        version=version,
        arm=CANARY,
        route=plain_route(target.route),
        description=description,
        pool=pool,
    )


def id_of_copy(request_id: str) -> str:
    return f"{request_id[:MAX_REQUEST_ID]}-{SHADOW}"


def copy_of(
    original: Prepared, target: Target, caller: Caller, record: RequestRecord, now: float
) -> Prepared:
    """The work as it was sent, which may be less than was asked, to the candidate.

    caller: the original's in the lowest band. record: the copy's own, which is filled in. The
    deadlines are the original's, from now.
    """
    source, tenant = original.record, caller.claim.tenant
    record.model, record.version, record.arm = source.model, target.version, SHADOW
    record.rollout, record.label, record.stream = target.rollout, source.label, source.stream
    record.conversation, record.pair = source.conversation, f"{random.getrandbits(64):016x}"
    # Not a minted one: nobody sees it, so nobody can have a word on it.
    record.answer_id = f"{SHADOW}-{record.pair}"
    operation, body = Operation(original.envelope.operation), json.loads(original.work.encoded)
    envelope = replace(
        original.envelope,
        claim=caller.token,
        version=target.version,
        arm=target.arm,
        band=SHADOW,
        request_id=record.request_id,
        answer_id=record.answer_id,
        traceparent=None,
        attempt=1,
        affinity=affinity_key(operation, body, target.version, tenant, record.conversation),
    )
    return Prepared(caller, target, original.work, envelope, record, now, original.deadlines)
