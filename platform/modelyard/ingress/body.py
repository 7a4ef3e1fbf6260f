"""Reading a request body: bounded in bytes, time and depth, and always a JSON object."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final, NoReturn

from modelyard.contract.errors import (
    BodyTooLarge,
    DeadlineExceeded,
    InvalidRequest,
    UnsupportedMedia,
)

READ_WITHIN_S: Final = 30.0


async def read_body(
    chunks: AsyncIterator[bytes], content_length: str | None, max_bytes: int
) -> bytes:
    """The whole body. Raises BodyTooLarge as soon as it is known, before the rest is read."""
    if content_length is not None and content_length.isdigit() and int(content_length) > max_bytes:
        _too_large(max_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(READ_WITHIN_S):
            async for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    _too_large(max_bytes)
                parts.append(chunk)
    except TimeoutError as error:
        raise DeadlineExceeded(
            f"the body did not arrive within {READ_WITHIN_S:g} s", reason="slow_body"
        ) from error
    return b"".join(parts)


def parse_object(body: bytes, content_type: str | None) -> dict[str, Any]:
    """The JSON object in a body. Raises InvalidRequest; the text of the body is never echoed."""
    media = (content_type or "").partition(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise UnsupportedMedia("send JSON with `Content-Type: application/json`")
    try:
        record = json.loads(body, parse_constant=_refuse_constant)
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise InvalidRequest("the body is not valid UTF-8") from error
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"the body is not valid JSON: {error.msg} at line {error.lineno} column {error.colno}"
        ) from error
    except RecursionError as error:
        raise InvalidRequest("the body is nested too deeply") from error
    except ValueError as error:
        raise InvalidRequest(f"the body is not valid JSON: {error}") from error
    if not isinstance(record, dict):
        raise InvalidRequest("the body must be a JSON object")
    return record


def _too_large(max_bytes: int) -> NoReturn:
    raise BodyTooLarge(f"the body is larger than {max_bytes} bytes: send less in one request")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
