"""The public keys of an issuer: a JWKS (RFC 7517) as the few keys that may verify a token here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from modelyard.config.issuers import Algorithm
from modelyard.contract.errors import ModelyardError

MAX_JWKS_BYTES: Final = 256 * 1024
MAX_KEYS: Final = 64
# Below: NIST SP 800-131A allows no less. Above: a key that takes milliseconds to verify with.
MIN_RSA_BITS: Final = 2048
MAX_RSA_BITS: Final = 8192
# The key's own type chooses the one algorithm it verifies: what a token's header says never does,
# so a public RSA key is no HMAC secret whatever anybody writes.
_ALGORITHMS: Final[dict[tuple[str, str | None], Algorithm]] = {
    ("RSA", None): "RS256",
    ("EC", "P-256"): "ES256",
    ("OKP", "Ed25519"): "EdDSA",
}
_PRIVATE: Final = frozenset(("d", "k", "p", "q"))


class BadKeySet(ModelyardError):
    """A text that is no key set, or holds no key that may be used. The text says what is wrong."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One public key and the one algorithm that it verifies."""

    kid: str | None
    algorithm: Algorithm
    key: Any


@dataclass(frozen=True, slots=True)
class KeySet:
    """What an issuer signs with now."""

    keys: tuple[SigningKey, ...] = ()

    def find(self, kid: str | None, algorithm: str) -> SigningKey | None:
        """The key that a token names; for a token that names none, the only one there is."""
        found = [key for key in self.keys if key.algorithm == algorithm]
        if kid is not None:
            found = [key for key in found if key.kid == kid]
        return found[0] if len(found) == 1 else None

    def holds(self, kid: str | None) -> bool:
        """Whether a fetched set could not know this key any better."""
        return bool(self.keys) and (kid is None or any(key.kid == kid for key in self.keys))


def parse_jwks(text: bytes) -> KeySet:
    """The usable keys of a JWKS. Raises BadKeySet.

    Keys of other uses and kinds are passed over, because an issuer publishes them for others. Two
    keys that a token could not tell apart are refused: one of them would be a guess.
    """
    if len(text) > MAX_JWKS_BYTES:
        raise BadKeySet(f"is larger than {MAX_JWKS_BYTES} bytes")
    record = strict_object(text)
    listed = record.get("keys") if record is not None else None
    if not isinstance(listed, list):
        raise BadKeySet('is no key set: it must be JSON, {"keys": [...]}')
    if len(listed) > MAX_KEYS:
        raise BadKeySet(f"holds {len(listed)} keys, at most {MAX_KEYS}")
    keys = tuple(key for one in listed if (key := _usable(one)) is not None)
    if not keys:
        raise BadKeySet("holds no public key for RS256, ES256 or EdDSA")
    if len({(key.kid, key.algorithm) for key in keys}) != len(keys):
        raise BadKeySet("holds two keys of one kid")
    return KeySet(keys)


def _usable(record: Any) -> SigningKey | None:
    if not isinstance(record, dict) or not _is_to_verify(record):
        return None
    curve = record.get("crv")
    kid = record.get("kid")
    if not isinstance(curve, str | None) or not isinstance(kid, str | None):
        return None
    algorithm = _ALGORITHMS.get((str(record.get("kty")), curve))
    if algorithm is None or record.get("alg") not in (None, algorithm):
        return None
    try:
        key = jwt.PyJWK(record, algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if isinstance(key, RSAPublicKey) and not MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
        return None
    return SigningKey(kid, algorithm, key)


def _is_to_verify(record: dict[str, Any]) -> bool:
    """A key whose private part is published proves nothing any more."""
    operations = record.get("key_ops")
    return (
        record.get("use") in (None, "sig")
        and (operations is None or (isinstance(operations, list) and "verify" in operations))
        and not _PRIVATE & record.keys()
    )


def strict_object(text: bytes) -> dict[str, Any] | None:
    """A JSON object, or None for anything else.

    Two members of one name are refused: of two readers each could believe another one.
    """
    try:
        record = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("two members of one name")
    return record


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
