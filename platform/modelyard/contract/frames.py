"""The envelope, and an answer, as the bytes that cross between ingress and shell.

Ray copies bytes as they are and pickles everything else: 75 us of CPU per item of a stream, more
than all that the ingress does with it. Layout: a length of four bytes, that many of JSON (what the
record holds besides its bytes), then the bytes themselves.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, fields
from typing import Any, Final

from modelyard.contract.envelope import Answer, Envelope, Failure, Item, Usage
from modelyard.contract.errors import Unauthenticated

_LENGTH: Final = struct.Struct(">I")
_HEADED: Final = tuple(one.name for one in fields(Envelope) if one.name != "body")
_PLAIN: Final = struct.Struct(">IB")  # an item that is not the last: no JSON, and its tokens
_MAX_PLAIN_TOKENS: Final = 255


def pack_envelope(envelope: Envelope) -> bytes:
    return _packed([getattr(envelope, name) for name in _HEADED], envelope.body)


def unpack_envelope(frame: Any) -> Envelope:
    """Raises Unauthenticated for anything that `pack_envelope` did not make."""
    try:
        header, body = _unpacked(frame)
        values = dict(zip(_HEADED, header, strict=True))
        values["labels"] = tuple((name, value) for name, value in values["labels"])
    except (TypeError, ValueError, KeyError, RecursionError, struct.error) as error:
        raise Unauthenticated(
            "the call is no envelope: models are reached through the ingress"
        ) from error
    return Envelope(body=body, **values)


def pack(answer: Answer) -> bytes:
    if isinstance(answer, Failure):
        return _packed(asdict(answer), b"")
    if answer.final is None and answer.output_tokens <= _MAX_PLAIN_TOKENS:
        return _PLAIN.pack(0, answer.output_tokens) + answer.data
    return _packed([answer.output_tokens, answer.final], answer.data)


def unpack(frame: bytes) -> Answer:
    if frame[:4] == b"\0\0\0\0":
        return Item(frame[_PLAIN.size :], frame[4])
    header, data = _unpacked(frame)
    if isinstance(header, dict):
        return Failure(**header)
    output_tokens, final = header
    return Item(data, output_tokens, None if final is None else Usage(*final))


def _packed(header: Any, data: bytes) -> bytes:
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return _LENGTH.pack(len(text)) + text + data


def _unpacked(frame: bytes) -> tuple[Any, bytes]:
    (length,) = _LENGTH.unpack_from(frame)
    end = _LENGTH.size + length
    return json.loads(frame[_LENGTH.size : end]), frame[end:]
