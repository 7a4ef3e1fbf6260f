"""From an Authorization header to a caller: the tenant is established here, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from modelyard.config.frozen import Role
from modelyard.config.table import Table
from modelyard.config.tenants import Key
from modelyard.contract.errors import Forbidden, Unauthenticated
from modelyard.tenancy.claim import Claim, sign
from modelyard.tenancy.keys import hash_key

_SCHEME: Final = "bearer "


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller: the claim, its signed form, and the key's roles."""

    claim: Claim
    token: str
    roles: frozenset[str]


class Authenticator:
    """Looks keys up by hash. The signed claim of each key is made once, when the table arrives."""

    def __init__(self, table: Table, secret: bytes) -> None:
        self._callers = {key.sha256: _caller(key, table, secret) for key in table.keys}

    def authenticate(self, authorization: str | None, role: Role) -> Caller:
        """The caller behind `Bearer my_<id>_<secret>`. Raises Unauthenticated or Forbidden.

        A dictionary keyed by the sha256 of what was sent needs no constant-time comparison: what
        timing could tell is a prefix of a hash, and no caller can choose a key by its hash.
        """
        if authorization is None or not authorization.lower().startswith(_SCHEME):
            raise Unauthenticated("send your key as `Authorization: Bearer my_...`")
        caller = self._callers.get(hash_key(authorization[len(_SCHEME) :].strip()))
        if caller is None:
            raise Unauthenticated("the key is unknown: it was mistyped, or it has been revoked")
        if role not in caller.roles:
            raise Forbidden(f"the key {caller.claim.key_id} lacks the role {role}", reason="role")
        return caller


def _caller(key: Key, table: Table, secret: bytes) -> Caller:
    tenant = table.tenants.get(key.tenant) if key.tenant is not None else None
    claim = Claim(
        tenant=key.tenant or "",
        key_id=key.id,
        tier=tenant.tier if tenant else "",
        region=tenant.region if tenant else "",
        priority=tenant.priority if tenant else "batch",
        roles=tuple(key.roles),
        models=tenant.models if tenant else (),
    )
    return Caller(claim, sign(claim, secret), frozenset(key.roles))
