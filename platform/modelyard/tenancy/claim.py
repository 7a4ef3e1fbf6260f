"""The tenant claim: made once at the edge, signed, checked by every shell.

A Ray cluster is one trust domain: the signature stops accidents and strays (a job that calls a
model's handle directly, a tenant taken from a request body), not hostile code inside the cluster.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass

from modelyard.contract.errors import Unauthenticated


@dataclass(frozen=True, slots=True)
class Claim:
    """Who the edge found to be calling. Replicas trust this and nothing in a request body.

    models, arms, max_context_tokens (prompt plus answer; None: the model's own limit) and features
    (None: all) are entitlements. subject: a hash of who inside the tenant a signed token speaks
    for, or empty; metadata, on which nothing is decided.
    """

    tenant: str
    key_id: str
    tier: str
    region: str
    priority: str
    roles: tuple[str, ...]
    models: tuple[str, ...]
    arms: tuple[str, ...] = ("stable",)
    max_context_tokens: int | None = None
    features: tuple[str, ...] | None = None
    subject: str = ""

    def may_use(self, alias: str) -> bool:
        return "*" in self.models or alias in self.models


def sign(claim: Claim, secret: bytes) -> str:
    """`payload.signature`, both base64url. The same claim and secret always give the same text."""
    payload = base64.urlsafe_b64encode(json.dumps(asdict(claim), sort_keys=True).encode())
    return f"{payload.decode()}.{_mac(payload, secret)}"


def verify(token: str, secret: bytes) -> Claim:
    """The claim in a token. Raises Unauthenticated for anything but a token that `sign` made."""
    payload, _, signature = token.partition(".")
    # A lone surrogate cannot be encoded, and `sign` writes ASCII only.
    if not token.isascii() or not hmac.compare_digest(_mac(payload.encode(), secret), signature):
        raise Unauthenticated(
            "the call carries no valid claim: models are reached through the ingress only"
        )
    try:
        record = json.loads(base64.urlsafe_b64decode(payload))
        lists = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
        return Claim(**(record | lists))
    except (binascii.Error, ValueError, AttributeError, TypeError) as error:
        raise Unauthenticated("the claim was signed by another release of modelyard") from error


def cache_salt(tenant: str, secret: bytes) -> str:
    """The prefix-cache salt of a tenant: no tenant can time another's cached prompts."""
    return hmac.new(secret, b"salt:" + tenant.encode(), hashlib.sha256).hexdigest()[:32]


def _mac(payload: bytes, secret: bytes) -> str:
    digest = hmac.new(secret, b"claim:" + payload, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
