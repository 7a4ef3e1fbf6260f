"""GET /admin/route: where a tenant's request would go now, and why."""

from __future__ import annotations

import random

from fastapi import FastAPI, Request, Response

from modelyard.contract.errors import NotFound
from modelyard.contract.headers import request_id_of
from modelyard.contract.operations import OPERATIONS_OF, Operation
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.responses import json_response
from modelyard.routing.conversation import named_conversation
from modelyard.routing.explain import Explanation, explain
from modelyard.tenancy.callers import make_caller


def add_routes(app: FastAPI, pipeline: Pipeline) -> None:
    @app.get("/admin/route", summary="Where a tenant's request would go, and why")
    async def route(
        request: Request, tenant: str = "", model: str = "", conversation: str = ""
    ) -> Response:
        """As this ingress sees it. Without a conversation the draw of one request."""
        pipeline.require_key(request.headers.get("authorization"), "admin")
        explanation = explained(pipeline, tenant, model, conversation)
        body = {"lines": explanation.lines, "steps": explanation.record()}
        return json_response(body, request_id_of(request.headers))


def explained(pipeline: Pipeline, tenant: str, model: str, conversation: str) -> Explanation:
    """Resolution as a key of the tenant with the role invoke would get it.

    `model` is an alias or `name@version` (as for the role evaluate). Raises NotFound (no such
    tenant) and InvalidRequest (a conversation too long).
    """
    table = pipeline.the_table()
    record = table.tenants.get(tenant)
    if record is None:
        raise NotFound(f"there is no tenant {tenant!r} in the table", param="tenant")
    # Signed with nothing: it is asked with, and never sent to a replica.
    caller = make_caller(b"", "route-explain", ("invoke", "evaluate"), (tenant, record))
    return explain(
        model,
        _operation(pipeline, model),
        caller,
        table,
        pipeline.fleet,
        pipeline.router.steering,
        pipeline.router.in_flight,
        key=named_conversation(tenant, conversation) if conversation else "",
        nonce=f"{random.getrandbits(64):x}",
    )


def _operation(pipeline: Pipeline, model: str) -> Operation:
    """One that the model answers; chat where nobody has seen it yet."""
    route = pipeline.the_table().routes.get(model)
    description = pipeline.fleet.describe(route.stable if route else model)
    return OPERATIONS_OF[description.kind][0] if description else Operation.CHAT
