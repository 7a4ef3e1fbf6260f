"""Pins: what a client carries from turn to turn so that its conversation keeps its version."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from modelyard.config.routes import Route
from modelyard.contract.operations import OPERATIONS_OF, Kind, Operation

MAC_BYTES: Final = 12
MAX_CHARACTERS: Final = 512  # of a pin: a version and a rollout's id are shorter by far
_TALKS: Final = frozenset(OPERATIONS_OF[Kind.GENERATOR]) - {Operation.COMPLETIONS}
# What only an answer can have brought: of /v1/responses, items without a role too.
_ROLES: Final = ("assistant", "tool")
_ITEMS: Final = ("function_call", "function_call_output", "reasoning")


@dataclass(frozen=True, slots=True)
class Pin:
    """The version that began a conversation, and the rollout in which it did."""

    version: str
    rollout: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What a request brings from the turns before it.

    pin: a genuine one. refused: why what came as a pin is none, "" where nothing came. goes_on: an
    answer is in it already.
    """

    pin: Pin | None = None
    refused: str = ""
    goes_on: bool = False


FIRST_TURN: Final = Turn()


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose pin it is: for anyone or anything else it is forged."""

    tenant: str
    alias: str
    conversation: str


def pins_conversations(route: Route | None) -> bool:
    """Whether a conversation of the route stays with the version that began it."""
    return route is not None and route.rollout is not None and route.rollout.conversations == "pin"


def write_pin(pin: Pin, holder: Holder, secret: bytes) -> str:
    """Text of `[A-Za-z0-9_-]`, which any ingress verifies without state."""
    payload = "\0".join((pin.version, pin.rollout)).encode()
    return base64.urlsafe_b64encode(_mac(payload, holder, secret) + payload).decode().rstrip("=")


def read_pin(text: str, holder: Holder, secret: bytes) -> Pin | None:
    """What `write_pin` was given for the same holder; None for any other text."""
    if len(text) > MAX_CHARACTERS:
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    signature, payload = raw[:MAC_BYTES], raw[MAC_BYTES:]
    if not hmac.compare_digest(_mac(payload, holder, secret), signature):
        return None
    version, _, rollout = payload.decode().partition("\0")
    return Pin(version, rollout)


def turn_of(text: str | None, holder: Holder, secret: bytes, *, goes_on: bool) -> Turn:
    """`text`: the header, None where the client sent none."""
    if text is None:
        return Turn(goes_on=goes_on)
    pin = read_pin(text, holder, secret)
    return Turn(pin, "" if pin is not None else "invalid", goes_on)


def goes_on(operation: Operation, body: Mapping[str, Any]) -> bool:
    """Whether a request carries an answer of before."""
    if operation not in _TALKS:
        return False
    messages = body.get("input" if operation is Operation.RESPONSES else "messages")
    if not isinstance(messages, list):
        return False
    return any(
        isinstance(one, dict) and (one.get("role") in _ROLES or one.get("type") in _ITEMS)
        for one in messages
    )


def _mac(payload: bytes, holder: Holder, secret: bytes) -> bytes:
    names = "\0".join((holder.tenant, holder.alias, holder.conversation)).encode()
    return hmac.new(secret, b"pin:" + names + b"\0" + payload, hashlib.sha256).digest()[:MAC_BYTES]
