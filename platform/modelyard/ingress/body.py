"""Reading a request body: bounded in bytes, time and depth, and always a JSON object."""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import AsyncIterator
from typing import Any, Final, NoReturn

from pydantic_core import from_json

from modelyard.contract.errors import (
    BodyTooLarge,
    DeadlineExceeded,
    InvalidRequest,
    UnsupportedMedia,
)

READ_WITHIN_S: Final = 30.0

_DIGITS: Final = re.compile("[0-9]+")


async def read_body(
    chunks: AsyncIterator[bytes], content_length: str | None, max_bytes: int
) -> bytes:
    """The whole body. Raises BodyTooLarge as soon as it is known, before the rest is read."""
    if _announced_bytes(content_length) > max_bytes:
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


def refuse_encoded(content_encoding: str | None) -> None:
    """Raises UnsupportedMedia for a compressed body, before it is read.

    Inflating is left to nobody: a few KiB could become more than any bound on bytes lets through.
    """
    if (content_encoding or "identity").strip().lower() != "identity":
        raise UnsupportedMedia("send the body as it is, without Content-Encoding")


def parse_object(body: bytes, content_type: str | None) -> dict[str, Any]:
    """The JSON object in a body. Raises InvalidRequest; the text of the body is never echoed.

    Pure, and blocks for up to 0.1 s a MiB: use a thread for a large body. A number like 1e999
    becomes infinity: `make_work` refuses it when it writes what it keeps, so that the body is not
    written once more only to look for one.
    """
    media = (content_type or "").partition(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise UnsupportedMedia("send JSON with `Content-Type: application/json`")
    try:
        # Not json.loads: it goes as deep as the stack of this call allows, and the same body then
        # breaks where it is written or read from a deeper one. This parser stops at 200 levels.
        record = from_json(body.removeprefix(codecs.BOM_UTF8), allow_inf_nan=False)
    except ValueError as error:
        raise InvalidRequest(f"the body is not valid JSON: {error}") from error
    if not isinstance(record, dict):
        raise InvalidRequest("the body must be a JSON object")
    return record


def _too_large(max_bytes: int) -> NoReturn:
    raise BodyTooLarge(f"the body is larger than {max_bytes} bytes: send less in one request")


def _announced_bytes(content_length: str | None) -> int:
    """0 for what is no number, and for none: the bytes are counted as they come anyway."""
    if content_length is None or not _DIGITS.fullmatch(content_length):
        return 0
    # int() refuses more digits than 4300.
    return int(content_length[:20])
