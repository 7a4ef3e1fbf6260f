"""`/admin/*`: an operator's door to control, for keys with the role admin.

The ingress checks key and body; control decides, stores and publishes. While control is away these
routes answer 503 `control_down`, and every other route works.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response

from modelyard.contract.errors import InvalidRequest, NotFound
from modelyard.contract.headers import request_id_of
from modelyard.contract.validate import validated
from modelyard.control import why
from modelyard.control.arguments import (
    AddOverride,
    Arguments,
    OfTenant,
    Release,
    RemoveOverride,
    Revoke,
    RevokeBody,
    SetWeight,
    WeightBody,
)
from modelyard.control.client import ControlClient
from modelyard.ingress import admin_rollouts
from modelyard.ingress.admin_door import AdminDoor, body_of, is_request_id
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.responses import json_response


def add_routes(app: FastAPI, pipeline: Pipeline, control: ControlClient) -> None:
    door = AdminDoor(pipeline, control)
    admin = _Admin(door, control)
    for path, asks in (
        ("status", "status"),
        ("keys", "keys"),
        ("overrides", "overrides"),
        ("replicas", "replicas"),
        ("usage", "usage"),
    ):
        app.add_api_route(f"/admin/{path}", admin.question(asks), methods=["GET"], summary=path)
    app.get("/admin/why/{request_id}", summary="What became of a request")(admin.why)
    app.post("/admin/keys/{key}/revoke", summary="Revoke a key for ever")(admin.revoke)
    app.post("/admin/overrides", summary="Beat the file for a time")(admin.add_override)
    app.delete("/admin/overrides/{id}", summary="End an override")(admin.remove_override)
    app.post("/admin/rollouts/{rollout}/weight", summary="Set a canary's percent")(admin.set_weight)
    app.delete("/admin/hold", summary="Let rollouts move again")(admin.release)
    admin_rollouts.add_routes(app, door)


class _Admin:
    """The handlers; one per app."""

    def __init__(self, door: AdminDoor, control: ControlClient) -> None:
        self._door = door
        self._control = control

    def question(self, verb: str) -> Any:
        """A GET that control answers."""

        async def asked(request: Request) -> Response:
            token = self._door.token(request)
            query = dict(request.query_params)
            validated(OfTenant if verb == "usage" else Arguments, query)
            return await self._door.ask(request, token, verb, query)

        return asked

    async def revoke(self, request: Request, key: str) -> Response:
        token = self._door.token(request)
        args = await body_of(request, RevokeBody, optional=True) | {"key": key}
        return await self._door.do(request, token, "revoke", Revoke, args)

    async def add_override(self, request: Request) -> Response:
        token = self._door.token(request)
        args = await body_of(request, AddOverride)
        return await self._door.do(request, token, "add_override", AddOverride, args)

    async def remove_override(self, request: Request, id: str) -> Response:
        token = self._door.token(request)
        return await self._door.do(request, token, "remove_override", RemoveOverride, {"id": id})

    async def set_weight(self, request: Request, rollout: str) -> Response:
        token = self._door.token(request)
        args = await body_of(request, WeightBody) | {"rollout": rollout}
        return await self._door.do(request, token, "set_weight", SetWeight, args)

    async def release(self, request: Request) -> Response:
        token = self._door.token(request)
        return await self._door.do(request, token, "release", Release, {})

    async def why(self, request: Request, request_id: str) -> Response:
        self._door.token(request)
        if not is_request_id(request_id):
            raise InvalidRequest("that is no request id", param="request_id")
        found = await self._control.find_request(request_id)
        lines = why.distinct(found.lines)
        if not lines:
            silent = f"; {found.silent} of {found.asked} ingresses did not answer"
            raise NotFound(
                f"no log holds the request {request_id}{silent if found.silent else ''}",
                reason="no_request",
            )
        record = {
            "request_id": request_id,
            "words": [why.in_words(line) for line in lines],
            "lines": lines,
            "ingresses_asked": found.asked,
            "ingresses_silent": found.silent,
        }
        return json_response(record, request_id_of(request.headers))
