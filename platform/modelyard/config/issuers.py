"""Issuers of signed tokens (JWT) whose word about a caller is taken."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, Self
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import Field, field_validator, model_validator

from modelyard.config.frozen import Frozen, Role, Seconds

Algorithm = Literal["RS256", "ES256", "EdDSA"]


class Issuer(Frozen):
    """One issuer. `jwks`: `file:///...` or `https://...` of its public keys (RFC 7517).

    `tenant_claim` names the tenant, which must be in `tenants`; `roles` are what every token of
    this issuer may do: a token never grants itself a role. `cache_s`: how long fetched keys hold.
    """

    issuer: Annotated[str, Field(min_length=1, max_length=256)]
    audience: Annotated[str, Field(min_length=1, max_length=256)]
    jwks: Annotated[str, Field(pattern=r"^(file:///|https?://).+", max_length=2048)]
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = (
        "RS256",
        "ES256",
        "EdDSA",
    )
    tenant_claim: Annotated[str, Field(min_length=1, max_length=64)] = "tenant"
    roles: tuple[Role, ...] = ("invoke",)
    skew_s: Annotated[float, Field(ge=0, le=300)] = 30.0
    cache_s: Seconds = 300.0

    @property
    def is_file(self) -> bool:
        return self.jwks.startswith("file:")

    @field_validator("jwks")
    @classmethod
    def _keys_come_from_where_they_say(cls, jwks: str) -> str:
        try:
            url = urlsplit(jwks)
            host, _ = url.hostname, url.port
        except ValueError as error:
            raise ValueError(f"jwks is no URL: {error}") from error
        if "\0" in unquote(jwks):
            raise ValueError("jwks holds a zero byte: write a path or a URL")
        if url.username is not None or url.fragment:
            raise ValueError("jwks must hold no user and no fragment: remove them")
        if url.scheme != "file" and not host:
            raise ValueError("jwks names no host: write https://host/path")
        if url.scheme == "http" and not _is_loopback(url):
            raise ValueError(
                "jwks over http:// can be altered on its way, and with it who is let in: use "
                "https:// (http:// is for this machine only)"
            )
        return jwks

    @model_validator(mode="after")
    def _roles_are_a_tenants(self) -> Self:
        if "invoke" not in self.roles:
            raise ValueError(f"tokens of {self.issuer!r} could call nothing: add the role invoke")
        if above := sorted(set(self.roles) & {"admin", "scrape"}):
            raise ValueError(
                f"every token of {self.issuer!r} would have the role {above[0]}, which sees all "
                "tenants, and a token is always one tenant's: give that role to a key"
            )
        return self


def _is_loopback(url: SplitResult) -> bool:
    if url.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(url.hostname or "").is_loopback
    except ValueError:
        return False
