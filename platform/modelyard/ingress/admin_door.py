"""How every `/admin` route asks control: the role, the body, the key of a verb."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from fastapi import Request, Response

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.headers import request_id_of
from modelyard.contract.validate import validated
from modelyard.control.arguments import Arguments
from modelyard.control.client import ControlClient
from modelyard.ingress.body import parse_object, read_body, refuse_encoded
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.responses import json_response

A = TypeVar("A", bound=Arguments)

MAX_BODY_BYTES: Final = 16 * 1024
IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_KEY: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


class AdminDoor:
    """One per app."""

    def __init__(self, pipeline: Pipeline, control: ControlClient) -> None:
        self._pipeline = pipeline
        self._control = control

    def token(self, request: Request) -> str:
        """Before the body is read: a stranger costs no memory."""
        return self._pipeline.require_key(request.headers.get("authorization"), "admin").token

    async def do(
        self,
        request: Request,
        token: str,
        verb: str,
        model: type[Arguments],
        args: Mapping[str, Any],
    ) -> Response:
        validated(model, args)
        return await self.ask(request, token, verb, args)

    async def ask(
        self, request: Request, token: str, verb: str, args: Mapping[str, Any]
    ) -> Response:
        answer = await self._control.admin(token, verb, args, _idempotency_key(request))
        return json_response(answer, request_id_of(request.headers))


async def body_of(
    request: Request,
    model: type[A],
    *,
    optional: bool = False,
    max_bytes: int = MAX_BODY_BYTES,
) -> dict[str, Any]:
    """The JSON object that was sent, which `model` accepts; `optional`: no body is an empty one."""
    headers = request.headers
    refuse_encoded(headers.get("content-encoding"))
    raw = await read_body(request.stream(), headers.get("content-length"), max_bytes)
    if optional and not raw:
        return {}
    record = parse_object(raw, headers.get("content-type"))
    validated(model, record)
    return record


def is_request_id(text: str) -> bool:
    return _KEY.fullmatch(text) is not None


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
