"""Signed tokens (JWT, RFC 7519 and 8725) of the issuers that the table trusts.

PyJWT does the cryptography, the rest is here: its own checks read the wall clock themselves, and
accept more shapes of a token than any issuer sends.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import jwt

from modelyard.config.issuers import Issuer
from modelyard.contract.errors import Unauthenticated
from modelyard.tenancy.jwks import KeySet, SigningKey, strict_object

MAX_TOKEN_BYTES: Final = 16 * 1024
_TOKEN: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+", re.ASCII)
# Where to find the key, by the token's own word: whoever wrote the token would choose its judge.
_KEY_HEADERS: Final = frozenset(("jku", "x5u", "jwk", "x5c"))
# `crit` asks for extensions, and there are none here; `b64` is one, which moves the payload away.
_REFUSED_HEADERS: Final = _KEY_HEADERS | {"crit", "b64"}
_MAX_TIME_S: Final = 10**12
_jws: Final = jwt.PyJWS()


class UnknownSigningKey(Unauthenticated):
    """The token names a key that its issuer's set does not hold: it may just have been rotated."""

    def __init__(self, issuer: str) -> None:
        super().__init__(
            "the token is signed with a key that is not known here: if its issuer has just changed "
            "its keys, send it again in some seconds; if not, get a new one"
        )
        self.issuer = issuer


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """What a token proved. tenant: as the token says, in the table or not. until: unix seconds up
    to which this holds, skew included. subject: 16 hex digits of a hash, or empty."""

    issuer: Issuer
    tenant: str
    subject: str
    until: float


def looks_like_token(text: str) -> bool:
    """Two dots and not one of our keys, whose id may hold dots too."""
    return text.count(".") == 2 and not text.startswith("my_")


def verify_token(
    token: str, issuers: Iterable[Issuer], keys_of: Callable[[str], KeySet], wall_s: float
) -> VerifiedToken:
    """Verify a token at the unix time `wall_s`. Raises Unauthenticated, or UnknownSigningKey.

    Until its signature holds, a token is told nothing about what is wrong with it.
    """
    match = _TOKEN.fullmatch(token) if len(token) <= MAX_TOKEN_BYTES else None
    if match is None:
        raise _refused()
    header, unproven = (_decoded(match[index]) for index in (1, 2))
    issuer = _issuer_of(unproven, issuers)
    key = _key_for(header, issuer, keys_of(issuer.issuer))
    try:
        payload = _jws.decode(token, key.key, algorithms=[key.algorithm])
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise _refused() from error
    claims = strict_object(payload)
    if claims is None:
        raise _refused()
    until = _check_times(claims, issuer, wall_s)
    _check_audience(claims, issuer)
    return VerifiedToken(issuer, _tenant_of(claims, issuer), _subject_of(claims, issuer), until)


def _decoded(segment: str) -> dict[str, Any]:
    try:
        record = strict_object(base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))
    except ValueError:
        record = None
    if record is None:
        raise _refused()
    return record


def _issuer_of(claims: dict[str, Any], issuers: Iterable[Issuer]) -> Issuer:
    name = claims.get("iss")
    issuer = next((one for one in issuers if one.issuer == name), None)
    if issuer is None:
        raise _refused()
    return issuer


def _key_for(header: dict[str, Any], issuer: Issuer, keys: KeySet) -> SigningKey:
    """The issuer's own key, for an algorithm that the table allows it."""
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in issuer.algorithms:
        raise _refused()
    if not isinstance(kid, str | None) or _REFUSED_HEADERS & header.keys():
        raise _refused()
    key = keys.find(kid, algorithm)
    if key is None:
        raise _refused() if keys.holds(kid) else UnknownSigningKey(issuer.issuer)
    return key


def _check_times(claims: dict[str, Any], issuer: Issuer, wall_s: float) -> float:
    expires = _time(claims, "exp")
    if expires is None:
        raise Unauthenticated("the token has no exp: ask its issuer for one that expires")
    if wall_s >= expires + issuer.skew_s:
        raise Unauthenticated("the token has expired: ask its issuer for a new one")
    for name in ("nbf", "iat"):
        begins = _time(claims, name)
        if begins is not None and wall_s < begins - issuer.skew_s:
            raise Unauthenticated(f"the token is not valid yet, says its {name}: send it later")
    return expires + issuer.skew_s


def _time(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    # type() and not isinstance(): True is an int.
    if type(value) not in (int, float) or not -_MAX_TIME_S < value < _MAX_TIME_S:
        raise Unauthenticated(f"the token's {name} is no time: it must be unix seconds")
    return float(value)


def _check_audience(claims: dict[str, Any], issuer: Issuer) -> None:
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    if issuer.audience not in named:
        raise Unauthenticated(
            "the token is meant for another audience: ask its issuer for one that is for this "
            "platform"
        )


def _tenant_of(claims: dict[str, Any], issuer: Issuer) -> str:
    tenant = claims.get(issuer.tenant_claim)
    if not isinstance(tenant, str):
        raise Unauthenticated(
            f"the token names no tenant: its issuer must put one into {issuer.tenant_claim}"
        )
    return tenant


def _subject_of(claims: dict[str, Any], issuer: Issuer) -> str:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        return ""
    text = f"{issuer.issuer}\0{subject}".encode(errors="surrogatepass")
    return hashlib.sha256(text).hexdigest()[:16]


def _refused() -> Unauthenticated:
    return Unauthenticated("the token is not valid here: ask its issuer for a new one")
