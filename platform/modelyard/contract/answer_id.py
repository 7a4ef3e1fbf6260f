"""The body's `id`: minted, and verifiable by any ingress without state."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from modelyard.contract.errors import InvalidRequest

# What stands before the id by the route: vLLM's for chat and completions, OpenAI's for responses.
RESPONSES_PREFIX: Final = "resp_"
PREFIXES: Final = ("chatcmpl-", "cmpl-", RESPONSES_PREFIX)

_NONCE_BYTES = 6
_TIME_BYTES = 5
_MAC_BYTES = 12


@dataclass(frozen=True, slots=True)
class AnswerId:
    """Which version and arm gave an answer, and when (Unix seconds).

    conversation: a short hash, "" where the answer belongs to no rollout or to no conversation.
    """

    version: str
    arm: str
    rollout: str
    time_s: int
    nonce: bytes
    conversation: str = ""


def mint(answer: AnswerId, tenant: str, secret: bytes) -> str:
    """Text of `[A-Za-z0-9_-]`. The tenant is in the signature only: the id does not name it."""
    if len(answer.nonce) != _NONCE_BYTES:
        raise ValueError(f"a nonce has {_NONCE_BYTES} bytes")
    names = "\0".join(
        (answer.version, answer.arm, answer.rollout)
        + ((answer.conversation,) if answer.conversation else ())
    ).encode()
    payload = answer.time_s.to_bytes(_TIME_BYTES, "big") + answer.nonce + names
    return base64.urlsafe_b64encode(_mac(payload, tenant, secret) + payload).decode().rstrip("=")


def read(text: str, tenant: str, secret: bytes) -> AnswerId:
    """What `mint` was given. Raises InvalidRequest for a forged id or one of another tenant.

    Takes the id as minted, or as an OpenAI route showed it, with one of PREFIXES before it.
    """
    # Bare first: base64 has `-` in its alphabet, so a minted id may itself begin like a prefix.
    for prefix in ("", *PREFIXES):
        if text.startswith(prefix):
            answer = _read(text[len(prefix) :], tenant, secret)
            if answer is not None:
                return answer
    raise InvalidRequest("the id is not one of ours", param="id")


def _read(text: str, tenant: str, secret: bytes) -> AnswerId | None:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    signature, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    names = payload[_TIME_BYTES + _NONCE_BYTES :].split(b"\0")
    if len(names) not in (3, 4):
        return None
    if not hmac.compare_digest(_mac(payload, tenant, secret), signature):
        return None
    version, arm, rollout, *rest = (name.decode() for name in names)
    nonce = payload[_TIME_BYTES : _TIME_BYTES + _NONCE_BYTES]
    time_s = int.from_bytes(payload[:_TIME_BYTES], "big")
    return AnswerId(version, arm, rollout, time_s, nonce, rest[0] if rest else "")


def _mac(payload: bytes, tenant: str, secret: bytes) -> bytes:
    message = b"answer:" + tenant.encode() + b"\0" + payload
    return hmac.new(secret, message, hashlib.sha256).digest()[:_MAC_BYTES]
