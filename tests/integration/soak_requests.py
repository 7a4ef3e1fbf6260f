"""Requests of every route, and one word for how each of them ended."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from modelyard.contract.headers import REQUEST_ID

PATIENCE_S: Final = 150.0  # above every deadline: only what nobody answers takes so long
WHOLE, LEFT, CUT = "whole", "left", "cut"
NOT_OURS: Final = "not ours"  # no connection, or HAProxy's own text
HUNG: Final = "hung"
UNENDED: Final = "ended without its end"  # a clean end that is not whole: nobody may see one
TYPED: Final = "typed"

QUESTION: Final = "Where is my parcel, and when will it come?"
MESSAGES: Final = [{"role": "user", "content": QUESTION}]
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Kind:
    """ends: what the whole of a stream holds, empty for an answer in one piece."""

    path: str
    body: Mapping[str, Any]
    ends: tuple[bytes, ...] = ()

    @property
    def model(self) -> str:
        return str(self.body["model"])


def _generating(
    path: str, cap: str, asked: dict[str, Any], *ends: bytes
) -> tuple[Kind, Kind, Kind]:
    body = {"model": "support-assistant", cap: 16} | asked
    long = body | {cap: 48, "stream": True}
    return Kind(path, body), Kind(path, body | {"stream": True}, ends), Kind(path, long, ends)


GENERATING: Final = (
    *_generating("/v1/chat/completions", "max_tokens", {"messages": MESSAGES}, DONE),
    *_generating("/v1/completions", "max_tokens", {"prompt": QUESTION}, DONE),
    *_generating(
        "/v1/responses",
        "max_output_tokens",
        {"input": QUESTION, "store": False},
        b"event: response.completed",
        b"event: response.incomplete",
    ),
    *_generating(
        "/v1/generate",
        "max_output_tokens",
        {"messages": MESSAGES, "conversation_id": "soak"},
        b"event: done",
    ),
)
SMALL: Final = (
    Kind("/v1/embeddings", {"model": "support-embed", "input": QUESTION}),
    Kind("/v1/embeddings", {"model": "support-embed", "input": [QUESTION * 4] * 16}),
    Kind("/v1/classify", {"model": "support-intent", "input": [QUESTION] * 4}),
    Kind(
        "/v1/rerank",
        {"model": "support-rerank", "query": QUESTION, "documents": [QUESTION, "No."] * 4},
    ),
    Kind("/v1/score", {"model": "support-rerank", "text_1": QUESTION, "text_2": ["Yes.", "No."]}),
)


@dataclass(frozen=True, slots=True)
class Sent:
    """One request. Times on the loop's clock. code and reason: of a typed error."""

    request_id: str
    kind: Kind
    began_s: float
    ended_s: float
    end: str
    code: str = ""
    reason: str = ""

    @property
    def word(self) -> str:
        return f"{self.end} {self.code} {self.reason}".strip()


def draw_kind(rng: random.Random, small_part: float) -> Kind:
    return rng.choice(SMALL if rng.random() < small_part else GENERATING)


async def send(
    session: aiohttp.ClientSession, kind: Kind, key: str, request_id: str, leave_after_s: float
) -> Sent:
    """leave_after_s: when its caller goes away, 0 for one that stays."""
    now = asyncio.get_running_loop().time
    began_s, received = now(), bytearray()
    status, is_cut, end = 0, False, ""
    try:
        async with (
            asyncio.timeout(leave_after_s or PATIENCE_S),
            session.post(
                kind.path,
                json=dict(kind.body),
                headers={"Authorization": f"Bearer {key}", REQUEST_ID: request_id},
            ) as response,
        ):
            status = response.status
            async for piece in response.content.iter_any():
                received += piece
    except TimeoutError:
        end = LEFT if leave_after_s else HUNG
    except aiohttp.ClientConnectorError:
        end = NOT_OURS
    except (aiohttp.ClientError, OSError):
        is_cut = True
    code, reason = "", ""
    if not end:
        end, code, reason = ended(kind, status, bytes(received), is_cut)
    return Sent(request_id, kind, began_s, now(), end, code, reason)


def ended(kind: Kind, status: int, received: bytes, is_cut: bool) -> tuple[str, str, str]:
    """The end of a request that its caller waited for, with the code and reason of an error."""
    streams = bool(kind.ends) and status == 200
    error = _error_in_stream(received) if streams else _error(received)
    if error is not None:
        return TYPED, *error
    if is_cut:
        return CUT, "", ""
    if status != 200:
        return NOT_OURS, str(status), received[:60].decode(errors="replace")
    whole = any(end in received for end in kind.ends) if streams else _is_object(received)
    return (WHOLE if whole else UNENDED), "", ""


def _error_in_stream(received: bytes) -> tuple[str, str] | None:
    for line in received.splitlines():
        if line.startswith(b"data: {") and (found := _error(line[6:])) is not None:
            return found
    return None


def _error(text: bytes) -> tuple[str, str] | None:
    """The platform's code and reason: of `error`, or of the native route's flat record."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    error = record.get("error")
    if isinstance(error, dict) and "modelyard_code" in error:
        return str(error["modelyard_code"]), str(error["reason"])
    if "retryable" in record and "code" in record:
        return str(record["code"]), ""
    return None


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
