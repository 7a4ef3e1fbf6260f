"""An issuer of signed tokens in memory: real keys, its JWKS, and tokens as odd as a test wants."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa

from modelyard.config.issuers import Algorithm

PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey
NAME: Final = "https://issuer.test"
AUDIENCE: Final = "modelyard"


def make_key(algorithm: Algorithm) -> PrivateKey:
    match algorithm:
        case "RS256":
            return generate_rsa(public_exponent=65537, key_size=2048)
        case "ES256":
            return generate_private_key(SECP256R1())
        case "EdDSA":
            return Ed25519PrivateKey.generate()


def public_jwk(algorithm: str, key: Any, kid: str | None) -> dict[str, Any]:
    """The JWK of a private key's public part."""
    made: dict[str, Any] = jwt.get_algorithm_by_name(algorithm).to_jwk(
        key.public_key(), as_dict=True
    )
    # PyJWT writes what each key may do, and some issuers' sets say less.
    made.pop("key_ops", None)
    return made if kid is None else made | {"kid": kid}


class InMemoryIssuer:
    """Signs with one key of each algorithm; the kid is the algorithm's name and a `generation`."""

    def __init__(self, name: str = NAME, generation: int = 1) -> None:
        self.name = name
        self.generation = generation
        algorithms: tuple[Algorithm, ...] = ("RS256", "ES256", "EdDSA")
        self.keys: dict[str, PrivateKey] = {one: make_key(one) for one in algorithms}

    def kid(self, algorithm: str) -> str:
        return f"{algorithm}-{self.generation}"

    def jwks(self) -> bytes:
        keys = [public_jwk(one, key, self.kid(one)) for one, key in self.keys.items()]
        return json.dumps({"keys": keys}).encode()

    def claims(self, wall_s: float, **changes: Any) -> dict[str, Any]:
        """Valid for ten minutes from `wall_s`, for the tenant alpha. A change to None removes."""
        claims = {
            "iss": self.name,
            "aud": AUDIENCE,
            "sub": "user-1",
            "tenant": "alpha",
            "iat": wall_s,
            "exp": wall_s + 600,
        } | changes
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, wall_s: float, algorithm: str = "EdDSA", **changes: Any) -> str:
        return self.signed(self.claims(wall_s, **changes), algorithm)

    def signed(self, payload: dict[str, Any] | bytes, algorithm: str, **headers: Any) -> str:
        """Any payload, with headers added or changed; `kid=None` leaves the kid out."""
        text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        header = {"kid": self.kid(algorithm)} | headers
        header = {name: value for name, value in header.items() if value is not None}
        return jwt.PyJWS().encode(text, self.keys[algorithm], algorithm, headers=header)

    def raw(self, header: dict[str, Any] | bytes, payload: bytes, algorithm: str) -> str:
        """Signed with the algorithm's key, whatever the header says."""
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        signed = f"{segment(text)}.{segment(payload)}"
        signer = jwt.get_algorithm_by_name(algorithm)
        return f"{signed}.{segment(signer.sign(signed.encode(), self.keys[algorithm]))}"


def segment(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
