"""`/admin/*`: an operator's door to control, for keys with the role admin.

The ingress checks key and body; control decides, stores and publishes. While control is away these
routes answer 503 `control_down`, and every other route works.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any, Final, TypeVar

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
from modelyard.ingress.body import parse_object, read_body, refuse_encoded
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.responses import json_response

A = TypeVar("A", bound=Arguments)

MAX_BODY_BYTES: Final = 16 * 1024
IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_KEY: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


def add_routes(app: FastAPI, pipeline: Pipeline, control: ControlClient) -> None:
    admin = _Admin(pipeline, control)
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


class _Admin:
    """The handlers; one per app."""

    def __init__(self, pipeline: Pipeline, control: ControlClient) -> None:
        self._pipeline = pipeline
        self._control = control

    def question(self, verb: str) -> Any:
        """A GET that control answers."""

        async def asked(request: Request) -> Response:
            token = self._token(request)
            query = dict(request.query_params)
            validated(OfTenant if verb == "usage" else Arguments, query)
            return await self._ask(request, token, verb, query)

        return asked

    async def revoke(self, request: Request, key: str) -> Response:
        token = self._token(request)
        args = await _body(request, RevokeBody, optional=True) | {"key": key}
        return await self._do(request, token, "revoke", Revoke, args)

    async def add_override(self, request: Request) -> Response:
        token = self._token(request)
        args = await _body(request, AddOverride)
        return await self._do(request, token, "add_override", AddOverride, args)

    async def remove_override(self, request: Request, id: str) -> Response:
        token = self._token(request)
        return await self._do(request, token, "remove_override", RemoveOverride, {"id": id})

    async def set_weight(self, request: Request, rollout: str) -> Response:
        token = self._token(request)
        args = await _body(request, WeightBody) | {"rollout": rollout}
        return await self._do(request, token, "set_weight", SetWeight, args)

    async def release(self, request: Request) -> Response:
        token = self._token(request)
        return await self._do(request, token, "release", Release, {})

    async def why(self, request: Request, request_id: str) -> Response:
        self._token(request)
        if not _KEY.fullmatch(request_id):
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

    def _token(self, request: Request) -> str:
        """Before the body is read: a stranger costs no memory."""
        return self._pipeline.require_key(request.headers.get("authorization"), "admin").token

    async def _do(
        self,
        request: Request,
        token: str,
        verb: str,
        model: type[Arguments],
        args: Mapping[str, Any],
    ) -> Response:
        validated(model, args)
        return await self._ask(request, token, verb, args)

    async def _ask(
        self, request: Request, token: str, verb: str, args: Mapping[str, Any]
    ) -> Response:
        answer = await self._control.admin(token, verb, args, _idempotency_key(request))
        return json_response(answer, request_id_of(request.headers))


async def _body(request: Request, model: type[A], *, optional: bool = False) -> dict[str, Any]:
    """The JSON object that was sent, which `model` accepts; `optional`: no body is an empty one."""
    headers = request.headers
    refuse_encoded(headers.get("content-encoding"))
    raw = await read_body(request.stream(), headers.get("content-length"), MAX_BODY_BYTES)
    if optional and not raw:
        return {}
    record = parse_object(raw, headers.get("content-type"))
    validated(model, record)
    return record


def _idempotency_key(request: Request) -> str:
    """The caller's, so that it may send a verb again; else one for this call alone.

    Not X-Request-Id: that is for correlation, and proxies and clients reuse it.
    """
    given = request.headers.get(IDEMPOTENCY_KEY)
    if given is None:
        return secrets.token_hex(16)
    if not _KEY.fullmatch(given):
        raise InvalidRequest(
            f"{IDEMPOTENCY_KEY} must be 1 to 128 of A-Z a-z 0-9 . _ and -", param=IDEMPOTENCY_KEY
        )
    return given
