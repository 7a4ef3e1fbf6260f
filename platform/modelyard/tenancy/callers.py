"""From a proven key or token to a caller: the claim, made and signed once."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from modelyard.config.table import Table
from modelyard.config.tenants import Tenant
from modelyard.contract.errors import Unauthenticated
from modelyard.tenancy.claim import Claim, sign
from modelyard.tenancy.jwt import VerifiedToken, verify_token
from modelyard.tenancy.keys import hash_key
from modelyard.tenancy.signing_keys import JwksSource

MAX_CACHED_TOKENS: Final = 4096


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller: the claim, its signed form, and its roles."""

    claim: Claim
    token: str
    roles: frozenset[str]


def make_caller(
    secret: bytes,
    key_id: str,
    roles: tuple[str, ...],
    named: tuple[str, Tenant] | None,
    subject: str = "",
) -> Caller:
    """`named` is the tenant's name and record; None: a key that administers and calls nothing."""
    name, tenant = named or ("", Tenant(priority="batch"))
    claim = Claim(
        tenant=name,
        key_id=key_id,
        tier=tenant.tier if named else "",
        region=(tenant.region or "") if named else "",
        priority=tenant.priority,
        roles=roles,
        models=tenant.models,
        arms=tenant.arms,
        max_context_tokens=tenant.max_context_tokens,
        features=tenant.features,
        subject=subject,
    )
    return Caller(claim, sign(claim, secret), frozenset(roles))


class TokenCallers:
    """The callers behind signed tokens. A token is verified once, and known until it expires.

    Verifying costs 50 to 150 us on every request otherwise. What is kept is dropped when any
    issuer's keys change, and one table never sees what another kept.
    """

    def __init__(self, table: Table, secret: bytes, source: JwksSource) -> None:
        self._table = table
        self._secret = secret
        self._source = source
        self._generation = source.generation
        self._kept: OrderedDict[str, tuple[Caller, float]] = OrderedDict()

    def find(self, token: str, wall_s: float) -> Caller:
        """Raises Unauthenticated, or UnknownSigningKey when fresh keys may help."""
        if self._source.generation != self._generation:
            self._generation = self._source.generation
            self._kept.clear()
        # The hash and not the token: what a dump of this process shows opens nothing.
        digest = hash_key(token)
        caller, until = self._kept.get(digest, (None, 0.0))
        if caller is not None and wall_s < until:
            self._kept.move_to_end(digest)
            return caller
        verified = verify_token(token, self._table.issuers, self._source.keys, wall_s)
        caller = self._caller(verified)
        self._kept[digest] = caller, verified.until
        if len(self._kept) > MAX_CACHED_TOKENS:
            self._kept.popitem(last=False)
        return caller

    def _caller(self, verified: VerifiedToken) -> Caller:
        tenant = self._table.tenants.get(verified.tenant)
        if tenant is None:
            raise Unauthenticated(
                "the token's tenant is not one of this platform: ask its operators to add it"
            )
        issuer = verified.issuer
        # A ":" is in no key's id, so a log line tells a token from a key.
        key_id, named = f"jwt:{issuer.issuer}", (verified.tenant, tenant)
        return make_caller(self._secret, key_id, issuer.roles, named, verified.subject)
