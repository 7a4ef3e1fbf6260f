"""GET /v1/models, /openapi.json and /docs."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html

from modelyard.contract.errors import NotFound
from modelyard.contract.headers import REQUEST_ID, request_id_of
from modelyard.ingress.openapi import document
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.responses import json_response
from modelyard.routing.resolve import visible_aliases


def add_routes(app: FastAPI, pipeline: Pipeline) -> None:
    @app.get("/v1/models", summary="The models you may use")
    async def list_models(request: Request) -> Response:
        records = _visible(pipeline, request)
        body = {"object": "list", "data": list(records.values())}
        return json_response(body, request_id_of(request.headers))

    @app.get("/v1/models/{model_id:path}", summary="One model you may use")
    async def get_model(request: Request, model_id: str) -> Response:
        record = _visible(pipeline, request).get(model_id)
        if record is None:
            raise NotFound(
                f"there is no model {model_id!r}: GET /v1/models lists yours",
                param="model",
                wire_code="model_not_found",
            )
        return json_response(record, request_id_of(request.headers))

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        pipeline.require_key(request.headers.get("authorization"), "admin")
        return json_response(document(app), request_id_of(request.headers))

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        pipeline.require_key(request.headers.get("authorization"), "admin")
        # The description travels in the page, because a browser could not send the key for it:
        # save the page with curl and open it.
        inline = "data:application/json," + quote(json.dumps(document(app)))
        page = get_swagger_ui_html(openapi_url=inline, title="modelyard")
        page.headers[REQUEST_ID] = request_id_of(request.headers)
        return page


def _visible(pipeline: Pipeline, request: Request) -> dict[str, dict[str, Any]]:
    caller = pipeline.require_key(request.headers.get("authorization"), "invoke")
    return {
        alias: _record(alias, pipeline) for alias in visible_aliases(caller, pipeline.the_table())
    }


def _record(alias: str, pipeline: Pipeline) -> dict[str, Any]:
    """OpenAI's model object with ours beside it; null until the version was first loaded."""
    route = pipeline.the_table().routes[alias]
    description = pipeline.fleet.describe(route.stable)
    record: dict[str, Any] = {
        "id": alias,
        "object": "model",
        "created": 0,
        "owned_by": "modelyard",
        "ready": pipeline.fleet.pool(route.stable).is_ready,
        "kind": None,
        "max_model_len": None,
        "max_output_tokens": None,
    }
    if description is not None:
        record["kind"] = description.kind
        record["max_model_len"] = description.max_context_tokens
        if description.max_output_tokens is not None:
            record["max_output_tokens"] = min(
                description.max_output_tokens, route.limits.max_output_tokens
            )
    return record
