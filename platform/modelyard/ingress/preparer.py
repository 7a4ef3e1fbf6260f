"""From a body to a request that may be sent: resolved, validated, addressed and weighed."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from modelyard.admission.degrade import Capped
from modelyard.config.table import Table
from modelyard.contract.answer_id import AnswerId, mint
from modelyard.contract.envelope import Envelope, Failure
from modelyard.contract.errors import InvalidRequest
from modelyard.contract.features import require_features
from modelyard.contract.headers import may_debug, plain_names
from modelyard.contract.operations import Operation
from modelyard.ingress.capped import capped
from modelyard.ingress.outcomes import CONVERSATION_DIGITS
from modelyard.ingress.pinning import Pinning, label_of
from modelyard.ingress.prepared import Ask, Prepared
from modelyard.ingress.router import Router
from modelyard.ingress.work import Work, alias_of, deadline_s, lowered, make_work
from modelyard.quota.estimate import need_of
from modelyard.quota.figures import class_of
from modelyard.quota.gate import QuotaGate
from modelyard.routing.affinity import affinity_key
from modelyard.routing.conversation import conversation_key
from modelyard.routing.pins import Holder
from modelyard.routing.resolve import Target
from modelyard.routing.trail import Trail
from modelyard.telemetry.request_log import RequestRecord
from modelyard.tenancy.callers import Caller


class Preparer:
    """One per ingress process. Nothing here waits, and nothing asks a replica."""

    def __init__(self, secret: bytes, router: Router, gate: QuotaGate) -> None:
        self._secret = secret
        self._pinning = Pinning(secret)
        self._router = router
        self._gate = gate

    def prepare(
        self,
        ask: Ask,
        caller: Caller,
        body: dict[str, Any],
        record: RequestRecord,
        table: Table,
    ) -> Prepared:
        """Raises RequestError for all that can be refused without a replica."""
        alias = record.model = alias_of(body)
        tenant = caller.claim.tenant
        record.conversation = conversation_key(ask.operation, body, ask.headers, tenant)
        trail = Trail() if may_debug(ask.headers, caller.roles) else None
        target = self._router.target(
            alias,
            ask.operation,
            caller,
            table,
            record.conversation,
            trail,
            self._pinning.turn(ask, body, table, Holder(tenant, alias, record.conversation)),
        )
        record.version, record.arm = target.version, target.arm
        record.label = label_of(ask.headers, target.route)
        require_features(caller.claim.features, ask.operation, body)
        target, work = self._work(ask, caller, body, target, table)
        record.stream, record.ignored_fields = work.stream, plain_names(work.ignored)
        deadlines = lowered(target.route.deadlines, deadline_s(work, ask.headers))
        envelope = _envelope(ask, caller, work, alias, record.traceparent)
        prepared = Prepared(
            caller, target, work, envelope, record, ask.started, deadlines, trail=trail
        )
        self.aim(prepared, target, body)
        if trail is not None:
            self._router.tell_cell(trail, prepared)
        if tenant in self._gate.metered:
            prepared.need = need_of(
                ask.request_id,
                tenant,
                class_of(target.description.kind),
                ask.operation,
                body,
                work.cap_tokens,
                work.choices,
            )
        return prepared

    def aim(self, prepared: Prepared, target: Target, body: Mapping[str, Any]) -> None:
        """Address a request to a target."""
        record, tenant = prepared.record, prepared.caller.claim.tenant
        prepared.target = target
        record.version, record.arm = target.version, target.arm
        record.arm_reason, record.rollout = target.why, target.rollout
        record.answer_id = self._mint(target, tenant, record.conversation)
        prepared.pin = self._pinning.pin(target, Holder(tenant, target.alias, record.conversation))
        operation = Operation(prepared.envelope.operation)
        prepared.envelope = replace(
            prepared.envelope,
            version=target.version,
            arm=target.arm,
            answer_id=record.answer_id,
            affinity=affinity_key(operation, body, target.version, tenant, record.conversation),
        )

    def turn(self, prepared: Prepared, other: Target, refusal: Failure) -> None:
        """Address a request to the other arm, which alone has what its replica lacked."""
        if prepared.trail is not None:
            prepared.trail.add(
                "turned",
                f"{prepared.target.version} refused it: {other.version} answers",
                why=refusal.wire_code or refusal.reason,
                arm=other.arm,
                version=other.version,
            )
        _lower_cap(prepared, other)
        self.aim(prepared, other, json.loads(prepared.work.encoded))
        if prepared.trail is not None:
            self._router.tell_cell(prepared.trail, prepared)

    def fall_back(self, prepared: Prepared, other: Target, body: Mapping[str, Any]) -> None:
        """Address a request to its route's fallback: its own version has no room for it."""
        if prepared.trail is not None:
            prepared.trail.add(
                "fallback",
                f"no room at {prepared.target.version}: {other.version} answers",
                version=other.version,
            )
        self.aim(prepared, other, body)
        if prepared.trail is not None:
            self._router.tell_cell(prepared.trail, prepared)

    def recall(self, prepared: Prepared, table: Table) -> None:
        """Address a request, which has not started, as a new one would be now that its arm has been
        rolled back. Raises NotLoaded."""
        asked, conversation = prepared.target, prepared.record.conversation
        operation = Operation(prepared.envelope.operation)
        other = self._router.target(
            asked.alias, operation, prepared.caller, table, conversation, prepared.trail
        )
        _lower_cap(prepared, other)
        self.aim(prepared, other, json.loads(prepared.work.encoded))
        if prepared.trail is not None:
            self._router.tell_cell(prepared.trail, prepared)

    def _work(
        self, ask: Ask, caller: Caller, body: dict[str, Any], target: Target, table: Table
    ) -> tuple[Target, Work]:
        """The work of the target, or of the other arm where only that one can make so much."""
        try:
            return target, _made(ask, body, target)
        except InvalidRequest as error:
            other = self._router.other(target, error.failure(), caller, table)
            if other is None:
                raise
        return other, _made(ask, body, other)

    def _mint(self, target: Target, tenant: str, conversation: str) -> str:
        answer = AnswerId(
            target.version,
            target.arm,
            target.rollout,
            int(time.time()),
            random.randbytes(6),
            conversation[:CONVERSATION_DIGITS] if target.rollout else "",
        )
        return mint(answer, tenant, self._secret)


def _made(ask: Ask, body: dict[str, Any], target: Target) -> Work:
    return make_work(ask.operation, body, target.route.limits, target.description)


def _lower_cap(prepared: Prepared, other: Target) -> None:
    """To what the version makes that answers in place of the one that the cap was checked for: its
    caller asked within a limit, and could not know of another. Told as every other lowered cap."""
    most = other.description.max_output_tokens
    if most is None or prepared.work.cap_tokens <= most:
        return
    operation = Operation(prepared.envelope.operation)
    prepared.work = capped(prepared.work, operation, most)
    prepared.envelope = replace(prepared.envelope, body=prepared.work.encoded)
    prepared.record.degraded = Capped(most).said


def _envelope(
    ask: Ask, caller: Caller, work: Work, alias: str, traceparent: str | None
) -> Envelope:
    """Without an address: `aim` writes it."""
    return Envelope(
        claim=caller.token,
        version="",
        operation=ask.operation,
        body=work.encoded,
        stream=work.stream,
        budget_ms=0,
        band=caller.claim.priority,
        request_id=ask.request_id,
        answer_id="",
        model_alias=alias,
        traceparent=traceparent,
    )
