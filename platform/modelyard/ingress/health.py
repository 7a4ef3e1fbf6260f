"""The probes. No key: they tell a load balancer yes or no, and name nothing."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from modelyard.contract.errors import NotFound, Overloaded
from modelyard.contract.headers import request_id_of
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.responses import json_response


def add_routes(app: FastAPI, pipeline: Pipeline) -> None:
    @app.get("/health/live", summary="Is this process turning?")
    async def live(request: Request) -> Response:
        return json_response({"status": "live"}, request_id_of(request.headers))

    @app.get("/health/startup", summary="Has this ingress its table?")
    async def startup(request: Request) -> Response:
        _require_table(pipeline)
        return json_response({"status": "started"}, request_id_of(request.headers))

    @app.get("/health/ready", summary="Can this ingress admit? ?model= asks for one model")
    @app.get("/health", include_in_schema=False)
    async def ready(request: Request, model: str | None = None) -> Response:
        """One unready model never fails the whole: the others still serve."""
        _require_table(pipeline)
        if model is not None:
            _require_model(pipeline, model)
        return json_response({"status": "ready"}, request_id_of(request.headers))


def _require_table(pipeline: Pipeline) -> None:
    if pipeline.table is None:
        raise Overloaded("this ingress has no table yet", reason="starting", retry_after_s=1)


def _require_model(pipeline: Pipeline, alias: str) -> None:
    route = pipeline.the_table().routes.get(alias)
    if route is None:
        raise NotFound(f"there is no model {alias!r}", param="model", wire_code="model_not_found")
    if not pipeline.fleet.pool(route.stable).is_ready:
        raise Overloaded(
            f"{alias} is not loaded",
            reason="not_loaded",
            retry_after_s=pipeline.fleet.load_s(route.stable),
        )
