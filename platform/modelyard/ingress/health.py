"""The probes. No key: they count models and replicas, and name neither nodes nor replicas.

Each answers another question, and none is about load: a full queue is told to the caller who meets
it, or the fleet would leave rotation when it is needed most.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Request, Response

from modelyard.config.routes import Route
from modelyard.contract.errors import NotFound, Overloaded
from modelyard.contract.headers import request_id_of
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.responses import json_response
from modelyard.routing.resolve import expected_load_s


def add_routes(app: FastAPI, pipeline: Pipeline) -> None:
    @app.get("/health/live", summary="Is this process turning?")
    async def live(request: Request) -> Response:
        """Looks at nothing but this process: whatever else is broken, a restart would not help."""
        return json_response({"status": "live"}, request_id_of(request.headers))

    @app.get("/health/startup", summary="Was it ever ready? ?model= asks for one model")
    async def startup(request: Request, model: str | None = None) -> Response:
        """Holds the other probes off while a model loads for the first time."""
        _require_table(pipeline)
        record: dict[str, Any] = {"status": "started"}
        if model is None:
            record["models"] = _models(pipeline, started=True)
        else:
            route = _route(pipeline, model)
            if not pipeline.fleet.ever_started(route.stable):
                raise _not_loaded(pipeline, route, model)
            record["replicas"] = _replicas(pipeline, route)
        return json_response(record, request_id_of(request.headers))

    @app.get("/health/ready", summary="Can this ingress admit? ?model= asks for one model")
    @app.get("/health", include_in_schema=False)
    async def ready(request: Request, model: str | None = None) -> Response:
        """One unready model never fails the whole: the others still serve."""
        _require_table(pipeline)
        record: dict[str, Any] = {"status": "ready"}
        if model is None:
            record["models"] = _models(pipeline, started=False)
        else:
            route = _route(pipeline, model)
            if not pipeline.fleet.pool(route.stable).is_ready:
                raise _not_loaded(pipeline, route, model)
            record["replicas"] = _replicas(pipeline, route)
        return json_response(record, request_id_of(request.headers))


def _require_table(pipeline: Pipeline) -> None:
    if pipeline.table is None:
        raise Overloaded("this ingress has no table yet", reason="starting", retry_after_s=1)


def _route(pipeline: Pipeline, alias: str) -> Route:
    route = pipeline.the_table().routes.get(alias)
    if route is None:
        raise NotFound(f"there is no model {alias!r}", param="model", wire_code="model_not_found")
    return route


def _not_loaded(pipeline: Pipeline, route: Route, alias: str) -> Overloaded:
    return Overloaded(
        f"{alias} is not loaded",
        reason="not_loaded",
        retry_after_s=expected_load_s(route.stable, pipeline.fleet, pipeline.router.steering),
    )


def _replicas(pipeline: Pipeline, route: Route) -> dict[str, int]:
    return asdict(pipeline.fleet.probes(route.stable))


def _models(pipeline: Pipeline, *, started: bool) -> dict[str, int]:
    """How many aliases there are and how many pass. No names: nobody has shown a key."""
    fleet, routes = pipeline.fleet, pipeline.the_table().routes.values()
    if started:
        passed = sum(fleet.ever_started(route.stable) for route in routes)
        return {"total": len(routes), "started": passed}
    passed = sum(fleet.pool(route.stable).is_ready for route in routes)
    return {"total": len(routes), "ready": passed}
