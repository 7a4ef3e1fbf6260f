"""From an Authorization header to a caller: the tenant is established here, once."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from datetime import UTC
from typing import Final

from modelyard.config.frozen import Role
from modelyard.config.table import Table
from modelyard.config.tenants import Key
from modelyard.contract.errors import Forbidden, Unauthenticated
from modelyard.tenancy.callers import Caller, TokenCallers, make_caller
from modelyard.tenancy.jwt import MAX_TOKEN_BYTES, UnknownSigningKey, looks_like_token
from modelyard.tenancy.keys import hash_key
from modelyard.tenancy.signing_keys import JwksSource

__all__ = ["Authenticator", "Caller"]

_SCHEME: Final = "bearer "
_NO_HASH: Final = "0" * 64
_UNKNOWN: Final = "the key is unknown: it was mistyped, or it has been revoked"


class Authenticator:
    """Of one table. Looks keys up by hash; a key's signed claim is made at its first use, because
    ten thousand at once would hold up every request of this process.

    wall: unix seconds, for what expires by a date. revoked: ids of keys that control has revoked,
    which beat the table; `revoke` replaces them, at the cost of one assignment.
    """

    def __init__(
        self,
        table: Table,
        secret: bytes,
        wall: Callable[[], float] = time.time,
        signing_keys: JwksSource | None = None,
        revoked: frozenset[str] = frozenset(),
    ) -> None:
        self._table = table
        self._secret = secret
        self._keys = {key.sha256: key for key in table.keys}
        self._callers: dict[str, Caller] = {}
        self._signing_keys = signing_keys or JwksSource()
        self._tokens = TokenCallers(table, secret, self._signing_keys)
        self._wall = wall
        self._revoked = revoked

    def revoke(self, ids: frozenset[str]) -> None:
        """Every id that is revoked now: one that is missing counts again, if the table has it."""
        self._revoked = ids

    async def admit(self, authorization: str | None, role: Role) -> Caller:
        """Like `authenticate`; a token of a key that is not known yet waits, at most a second."""
        try:
            return self.authenticate(authorization, role)
        except UnknownSigningKey as error:
            await self._signing_keys.wait_for_new(error.issuer)
        return self.authenticate(authorization, role)

    def authenticate(self, authorization: str | None, role: Role) -> Caller:
        """The caller behind `Bearer my_<id>_<secret>` or `Bearer <JWT>`.

        Raises Unauthenticated or Forbidden; UnknownSigningKey, a kind of the former, when the keys
        of a token's issuer may have changed.
        """
        if authorization is None or not authorization.lower().startswith(_SCHEME):
            raise Unauthenticated("send your key as `Authorization: Bearer my_...`")
        sent = authorization[len(_SCHEME) :].strip()
        if not sent.isascii() or len(sent) > MAX_TOKEN_BYTES:
            raise Unauthenticated(_UNKNOWN)
        caller = self._of_token(sent) if looks_like_token(sent) else self._of_key(sent)
        if role not in caller.roles:
            raise Forbidden(f"the key {caller.claim.key_id} lacks the role {role}", reason="role")
        return caller

    def _of_key(self, key: str) -> Caller:
        """A dictionary's lookup by hash could tell through time no more than a prefix of a hash,
        and nobody can choose a key by its hash; the comparison that decides is constant-time."""
        digest = hash_key(key)
        known = self._keys.get(digest)
        if not hmac.compare_digest(_NO_HASH if known is None else known.sha256, digest):
            raise Unauthenticated(_UNKNOWN)
        assert known is not None  # no text has the hash of zeros
        # From here on the caller has shown that the key is its own, and may be told about it.
        self._refuse_revoked(known.id)
        if known.expires is not None and self._wall() >= known.expires.timestamp():
            ended = known.expires.astimezone(UTC).isoformat(timespec="seconds")
            raise Unauthenticated(f"the key {known.id} expired at {ended}: ask for a new one")
        caller = self._callers.get(digest)
        if caller is None:
            caller = self._callers[digest] = self._caller_of(known)
        return caller

    def _caller_of(self, key: Key) -> Caller:
        named = None if key.tenant is None else (key.tenant, self._table.tenants[key.tenant])
        return make_caller(self._secret, key.id, key.roles, named)

    def _of_token(self, token: str) -> Caller:
        caller = self._tokens.find(token, self._wall())
        self._refuse_revoked(caller.claim.key_id)
        return caller

    def _refuse_revoked(self, key_id: str) -> None:
        if key_id in self._revoked:
            raise Unauthenticated(f"the key {key_id} has been revoked: ask for a new one")
