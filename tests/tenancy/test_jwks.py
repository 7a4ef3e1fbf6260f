import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.tenancy.jwks import MAX_JWKS_BYTES, BadKeySet, parse_jwks
from modelyard.testing.issuer import InMemoryIssuer, public_jwk


def text_of(*keys: Any) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


def jwk(issuer: InMemoryIssuer, algorithm: str, **changes: Any) -> dict[str, Any]:
    return public_jwk(algorithm, issuer.keys[algorithm], "k") | changes


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_keys_own_type_decides_what_it_verifies(issuer: InMemoryIssuer, algorithm: str) -> None:
    keys = parse_jwks(issuer.jwks())
    found = keys.find(issuer.kid(algorithm), algorithm)
    assert found is not None
    assert found.algorithm == algorithm
    for other in {"RS256", "ES256", "EdDSA", "HS256", "none"} - {algorithm}:
        assert keys.find(issuer.kid(algorithm), other) is None


def test_a_token_without_a_kid_finds_the_only_key_and_never_one_of_two(
    issuer: InMemoryIssuer, rotated: InMemoryIssuer
) -> None:
    assert parse_jwks(issuer.jwks()).find(None, "ES256") is not None
    both = json.loads(issuer.jwks())["keys"] + json.loads(rotated.jwks())["keys"]
    assert parse_jwks(text_of(*both)).find(None, "ES256") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"alg": "RS512"},
        {"alg": "HS256"},
        {"d": "AQAB"},
        {"n": "!!"},
        {"n": 7},
        {"e": None},
        {"kty": "oct", "k": "AAAA"},
        {"kty": "EC"},
        {"kty": 1},
        {"kid": 1},
        {"crv": ["P-256"]},
    ],
    ids=str,
)
def test_a_key_of_another_use_or_kind_is_passed_over(
    issuer: InMemoryIssuer, changes: dict[str, Any]
) -> None:
    good = jwk(issuer, "EdDSA", kid="good")
    keys = parse_jwks(text_of(jwk(issuer, "RS256", **changes), good))
    assert [key.kid for key in keys.keys] == ["good"]


def test_keys_that_are_too_weak_or_of_another_curve_are_passed_over(
    issuer: InMemoryIssuer,
) -> None:
    weak = public_jwk("RS256", generate_private_key(65537, 1024), "weak")
    curve = public_jwk("ES384", generate_ec(SECP384R1()), "p384")
    keys = parse_jwks(text_of(weak, curve, jwk(issuer, "ES256")))
    assert [key.kid for key in keys.keys] == ["k"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "no key set"),
        (b"[]", "no key set"),
        (b'{"keys": {}}', "no key set"),
        (b'{"keys": [], "keys": []}', "no key set"),
        (b"[" * 100_000, "no key set"),
        (b"\xff", "no key set"),
        (b'{"keys": []}', "no public key"),
        (b'{"keys": [null, 1, "x"]}', "no public key"),
        (text_of(*[{}] * 65), "at most 64"),
        (b" " * (MAX_JWKS_BYTES + 1), "larger"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_text_without_keys_says_what_is_wrong(text: bytes, why: str) -> None:
    with pytest.raises(BadKeySet, match=why):
        parse_jwks(text)


def test_two_keys_of_one_kid_are_refused(issuer: InMemoryIssuer, rotated: InMemoryIssuer) -> None:
    with pytest.raises(BadKeySet, match="two keys of one kid"):
        parse_jwks(text_of(jwk(issuer, "ES256"), jwk(rotated, "ES256")))


@settings(max_examples=100)
@given(
    record=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["kty", "crv", "n", "e", "x", "y", "kid", "use"]), inner
            )
        ),
        max_leaves=12,
    ),
    kind=st.sampled_from(["RSA", "EC", "OKP", "oct"]),
)
def test_no_json_makes_anything_but_keys_or_a_refusal(record: Any, kind: str) -> None:
    key = {"kty": kind} | (record if isinstance(record, dict) else {"n": record})
    with pytest.raises(BadKeySet):
        parse_jwks(text_of(key, record))
