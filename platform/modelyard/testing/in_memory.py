"""A whole ingress in memory: a table, a ready fleet, a scripted transport, the real pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from fastapi import FastAPI

from modelyard.config.table import Table, parse_table
from modelyard.contract.operations import Kind
from modelyard.ingress.app import build_app
from modelyard.ingress.pipeline import Pipeline
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Description, Post, ReplicaReport
from modelyard.routing.fleet import Fleet
from modelyard.telemetry.request_log import RequestRecord
from modelyard.tenancy.keys import hash_key
from modelyard.testing.scripted_transport import ScriptedTransport, Step

SECRET: Final = b"a signing key for tests only: 32+"
# alpha may use every model, beta one of them; ops has no tenant.
ALPHA_KEY: Final = "my_alpha-1_for-tests-of-modelyard"
BETA_KEY: Final = "my_beta-1_for-tests-of-modelyard"
EVALUATOR_KEY: Final = "my_evaluator-1_for-tests-of-modelyard"
OPS_KEY: Final = "my_ops-1_for-tests-of-modelyard"

SLOTS: Final = 24  # requests that each replica takes at once
VERSIONS: Final = {
    "chat": ("gen@1.0.0", Kind.GENERATOR),
    "team/embed": ("emb@1.0.0", Kind.EMBEDDER),
    "intent": ("cls@1.0.0", Kind.CLASSIFIER),
    "rerank": ("rer@1.0.0", Kind.RERANKER),
}


def table_record(**changes: Any) -> dict[str, Any]:
    """The table as a file would hold it, with whole top-level keys replaced by `changes`."""
    record: dict[str, Any] = {
        "schema": "modelyard/table/v1",
        "region": "eu",
        "routes": {alias: {"stable": version} for alias, (version, _) in VERSIONS.items()},
        "tenants": {
            "alpha": {"tier": "paid", "region": "eu", "models": ["*"]},
            "beta": {"region": "eu", "priority": "batch", "models": ["team/embed"]},
        },
        "keys": [
            {"id": "alpha-1", "tenant": "alpha", "sha256": hash_key(ALPHA_KEY)},
            {"id": "beta-1", "tenant": "beta", "sha256": hash_key(BETA_KEY)},
            {
                "id": "evaluator-1",
                "tenant": "beta",
                "sha256": hash_key(EVALUATOR_KEY),
                "roles": ["invoke", "evaluate"],
            },
            {"id": "ops-1", "sha256": hash_key(OPS_KEY), "roles": ["admin", "scrape"]},
        ],
    }
    return record | changes


def description(version: str, kind: Kind) -> Description:
    output = 512 if kind is Kind.GENERATOR else None
    return Description(version, kind, "0123456789abcdef", 2048, output)


def post(
    app: str,
    kind: Kind = Kind.GENERATOR,
    *,
    phase: Phase = Phase.READY,
    age_s: float = 0.1,
    load_s: float = 4.0,
    slots: int = SLOTS,
    replica: str = "r1",
    max_context_tokens: int = 2048,
) -> Post:
    """What the board would hold of one replica of an app."""
    version = app.partition("--")[0]
    report = ReplicaReport(
        app=app,
        replica=replica,
        node="n1",
        pid=1,
        phase=phase,
        phase_s=1.0,
        phases=((Phase.LOADING, load_s),),
        slots=slots,
        description=replace(description(version, kind), max_context_tokens=max_context_tokens),
    )
    return Post(report, age_s)


class InMemoryIngress:
    """The pipeline and its HTTP app over a ScriptedTransport; `records` is the request log."""

    def __init__(
        self,
        *scripts: list[Step],
        now: Callable[[], float] = time.monotonic,
        table: Table | None = None,
        transport: ScriptedTransport | None = None,
    ) -> None:
        self.transport = transport or ScriptedTransport(*scripts)
        self.fleet = Fleet()
        self.fleet.update(post(version, kind) for version, kind in VERSIONS.values())
        self.records: list[RequestRecord] = []
        self.pipeline = Pipeline(SECRET, self.transport, self.fleet, self.records.append, now)
        self.pipeline.adopt(table or parse_table(table_record()))
        self.app: FastAPI = build_app(self.pipeline)


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}
