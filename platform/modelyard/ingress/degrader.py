"""Makes requests smaller, where their route allows it and too much waits."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from modelyard.admission.degrade import FULL, Asked, Capped, FellBack, degrade
from modelyard.config.table import Table
from modelyard.contract.operations import Operation
from modelyard.ingress.capped import capped
from modelyard.ingress.demand import Demand
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.preparer import Preparer
from modelyard.ingress.router import Router
from modelyard.ingress.work import Work


class Degrader:
    """One per ingress process."""

    def __init__(self, router: Router, preparer: Preparer, demand: Demand) -> None:
        self._router = router
        self._preparer = preparer
        self._demand = demand

    def ease(self, prepared: Prepared, pressure: float, table: Table) -> None:
        """Before a request asks for a slot: cap its output, if so much waits."""
        overload = prepared.target.route.overload
        if overload.cap_output_tokens is None or pressure * 100 < overload.cap_at_percent:
            return
        # What the queue will refuse is better answered whole by the fallback: one loss, not two.
        other = self._router.fallback(prepared, table) if pressure >= FULL else None
        instead = other.description if other is not None else None
        eased = degrade(
            overload, _asked(prepared, prepared.work, _read(prepared.work)), pressure, instead
        )
        if isinstance(eased, Capped):
            operation = Operation(prepared.envelope.operation)
            prepared.whole = prepared.work
            _work(prepared, capped(prepared.work, operation, eased.cap_tokens))
            prepared.record.degraded = eased.said

    def fall_back(self, prepared: Prepared, table: Table) -> bool:
        """After the queue refused a request: whether it now goes to its route's fallback."""
        overload = prepared.target.route.overload
        if overload.fallback is None or prepared.status_sent:
            return False
        other = self._router.fallback(prepared, table)
        if other is None:
            return False
        whole = prepared.whole or prepared.work
        body = _read(whole)
        eased = degrade(overload, _asked(prepared, whole, body), FULL, other.description)
        if not isinstance(eased, FellBack):
            return False
        _work(prepared, whole)
        prepared.whole = None
        self._demand.moved(prepared.target.version, other.version)
        self._preparer.fall_back(prepared, other, body)
        prepared.record.degraded = eased.said
        return True


def _read(work: Work) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(work.encoded)
    return body


def _work(prepared: Prepared, work: Work) -> None:
    prepared.work = work
    prepared.envelope = replace(prepared.envelope, body=work.encoded)


def _asked(prepared: Prepared, work: Work, body: dict[str, Any]) -> Asked:
    operation = Operation(prepared.envelope.operation)
    alias, prompt_tokens = prepared.target.alias, prepared.prompt_tokens
    return Asked.of(alias, operation, body, prompt_tokens, work.cap_tokens)
