"""Issuers of signed tokens (JWT) whose word about a caller is taken."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from modelyard.config.frozen import Frozen, Role, Seconds

Algorithm = Literal["RS256", "ES256", "EdDSA"]


class Issuer(Frozen):
    """One issuer. `jwks`: `file:///...` or `https://...` of its public keys (RFC 7517).

    `tenant_claim` names the tenant, which must be in `tenants`; `roles` are what every token of
    this issuer may do: a token never grants itself a role. `cache_s`: how long fetched keys hold.
    """

    issuer: Annotated[str, Field(min_length=1, max_length=256)]
    audience: Annotated[str, Field(min_length=1, max_length=256)]
    jwks: Annotated[str, Field(pattern=r"^(file:///|https?://).+")]
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = (
        "RS256",
        "ES256",
        "EdDSA",
    )
    tenant_claim: Annotated[str, Field(min_length=1, max_length=64)] = "tenant"
    roles: tuple[Role, ...] = ("invoke",)
    skew_s: Annotated[float, Field(ge=0, le=300)] = 30.0
    cache_s: Seconds = 300.0
