"""How an ingress reaches control and its fellow ingresses; Ray is behind it, or a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from modelyard.contract.errors import Overloaded
from modelyard.tenancy.claim import Claim, sign

INGRESS_ROLE: Final = "ingress"  # no key of a table can have it


@dataclass(frozen=True, slots=True)
class Found:
    """A request in the request logs. asked: ingresses; silent: those of them without an answer."""

    lines: tuple[dict[str, Any], ...]
    asked: int
    silent: int


class ControlClient(Protocol):
    async def admin(self, token: str, verb: str, args: Mapping[str, Any], request: str) -> Any:
        """Control's answer to a verb, plain data. `token`: the caller's signed claim.

        Raises RequestError: control's own, or `control_down` when it does not answer in time.
        """

    async def find_request(self, request_id: str) -> Found:
        """What every ingress's log holds of a request. Raises RequestError."""


def control_down() -> Overloaded:
    return Overloaded(
        "control does not answer, requests are served without it: try again",
        reason="control_down",
        retry_after_s=5,
    )


def ingress_token(secret: bytes) -> str:
    """The claim that ingresses and control show each other."""
    own = Claim(
        tenant="modelyard",
        key_id=INGRESS_ROLE,
        tier="platform",
        region="local",
        priority="interactive",
        roles=(INGRESS_ROLE,),
        models=(),
    )
    return sign(own, secret)
