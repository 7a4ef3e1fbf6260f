import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.config.issuers import Issuer
from modelyard.contract.errors import Unauthenticated
from modelyard.tenancy.jwks import KeySet, parse_jwks
from modelyard.tenancy.jwt import (
    MAX_TOKEN_BYTES,
    UnknownSigningKey,
    VerifiedToken,
    looks_like_token,
    verify_token,
)
from modelyard.testing.issuer import AUDIENCE, NAME, InMemoryIssuer, segment

NOW = 1_800_000_000.0
SKEW_S = 30.0
REFUSED = "not valid here"


def config(name: str = NAME, **changes: Any) -> Issuer:
    record = {"issuer": name, "audience": AUDIENCE, "jwks": "file:///keys.json", "skew_s": SKEW_S}
    return Issuer.model_validate(record | changes)


def verified(
    token: str, *issuers: InMemoryIssuer, wall_s: float = NOW, **changes: Any
) -> VerifiedToken:
    keys = {one.name: parse_jwks(one.jwks()) for one in issuers}
    configs = [config(one.name, **changes) for one in issuers]
    return verify_token(token, configs, lambda name: keys.get(name, KeySet()), wall_s)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_each_algorithm_proves_who_is_calling(issuer: InMemoryIssuer, algorithm: str) -> None:
    token = issuer.token(NOW, algorithm)
    proved = verified(token, issuer)
    assert (proved.tenant, proved.issuer.issuer) == ("alpha", NAME)
    assert proved.until == NOW + 600 + SKEW_S
    assert len(proved.subject) == 16
    assert "user-1" not in proved.subject


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_an_algorithm_that_the_table_does_not_allow_is_refused(
    issuer: InMemoryIssuer, algorithm: str
) -> None:
    others = [one for one in ("RS256", "ES256", "EdDSA") if one != algorithm]
    with pytest.raises(Unauthenticated, match=REFUSED):
        verified(issuer.token(NOW, algorithm), issuer, algorithms=others)


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_public_key_is_no_secret_to_sign_with(
    issuer: InMemoryIssuer, algorithm: str, encoding: Encoding
) -> None:
    secret = (
        issuer.keys["RS256"].public_key().public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
    )
    header = {"alg": algorithm, "typ": "JWT", "kid": issuer.kid("RS256")}
    payload = json.dumps(issuer.claims(NOW)).encode()
    signed = f"{segment(json.dumps(header).encode())}.{segment(payload)}"
    digest = hmac.new(secret, signed.encode(), f"sha{algorithm[2:]}").digest()
    with pytest.raises(Unauthenticated, match=REFUSED):
        verified(f"{signed}.{segment(digest)}", issuer)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, 1, ["EdDSA"]])
@pytest.mark.parametrize("signature", ["", "AA"])
def test_a_token_that_says_it_needs_no_signature_is_refused(
    issuer: InMemoryIssuer, algorithm: Any, signature: str
) -> None:
    header = {"alg": algorithm, "kid": issuer.kid("EdDSA")}
    payload = json.dumps(issuer.claims(NOW)).encode()
    token = f"{segment(json.dumps(header).encode())}.{segment(payload)}.{signature}"
    with pytest.raises(Unauthenticated, match=REFUSED):
        verified(token, issuer)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_an_empty_signature_is_refused(issuer: InMemoryIssuer, algorithm: str) -> None:
    unsigned = issuer.token(NOW, algorithm).rpartition(".")[0]
    for token in (unsigned, f"{unsigned}.", f"{unsigned}.=", f"{unsigned}.AA"):
        with pytest.raises(Unauthenticated, match=REFUSED):
            verified(token, issuer)


@pytest.mark.parametrize(
    ("said", "key"),
    [("RS256", "ES256"), ("ES256", "EdDSA"), ("EdDSA", "RS256"), ("RS512", "RS256")],
)
def test_a_header_cannot_choose_another_algorithm_for_a_key(
    issuer: InMemoryIssuer, said: str, key: str
) -> None:
    payload = json.dumps(issuer.claims(NOW)).encode()
    for kid in (issuer.kid(key), issuer.kid(said)):
        token = issuer.raw({"alg": said, "kid": kid}, payload, key)
        with pytest.raises(Unauthenticated):
            verified(token, issuer)


def test_another_issuers_key_of_the_same_name_proves_nothing(
    issuer: InMemoryIssuer, other_issuer: InMemoryIssuer
) -> None:
    forged = other_issuer.signed(issuer.claims(NOW), "ES256")
    assert issuer.kid("ES256") == other_issuer.kid("ES256")
    with pytest.raises(Unauthenticated, match=REFUSED):
        verified(forged, issuer, other_issuer)
    assert verified(other_issuer.token(NOW), issuer, other_issuer).issuer.issuer != NAME


@pytest.mark.parametrize(
    "headers",
    [
        {"jku": "https://evil.test/keys"},
        {"x5u": "https://evil.test/cert"},
        {"x5c": ["AAAA"]},
        {"jwk": {"kty": "OKP"}},
        {"crit": ["exp"]},
        {"crit": []},
        {"b64": True},
        {"kid": 1},
        {"kid": ["a"]},
    ],
    ids=str,
)
def test_a_header_that_brings_its_own_key_or_an_extension_is_refused(
    issuer: InMemoryIssuer, headers: dict[str, Any]
) -> None:
    header = {"alg": "EdDSA", "kid": issuer.kid("EdDSA")} | headers
    token = issuer.raw(header, json.dumps(issuer.claims(NOW)).encode(), "EdDSA")
    with pytest.raises(Unauthenticated, match=REFUSED):
        verified(token, issuer)


def test_a_key_that_nobody_knows_may_have_been_rotated(
    issuer: InMemoryIssuer, rotated: InMemoryIssuer
) -> None:
    with pytest.raises(UnknownSigningKey, match="send it again"):
        verified(rotated.token(NOW), issuer)
    with pytest.raises(UnknownSigningKey):
        verify_token(issuer.token(NOW), [config()], lambda name: KeySet(), NOW)


def test_a_token_without_a_kid_is_verified_by_the_only_key_of_its_kind(
    issuer: InMemoryIssuer,
) -> None:
    token = issuer.signed(issuer.claims(NOW), "ES256", kid=None)
    assert verified(token, issuer).tenant == "alpha"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"iss": "https://evil.test"}, REFUSED),
        ({"iss": None}, REFUSED),
        ({"iss": [NAME]}, REFUSED),
        ({"aud": "another"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": []}, "another audience"),
        ({"aud": [1, {}]}, "another audience"),
        ({"aud": {AUDIENCE: 1}}, "another audience"),
        ({"exp": None}, "no exp"),
        ({"exp": "1900000000"}, "no time"),
        ({"exp": True}, "no time"),
        ({"exp": [1]}, "no time"),
        ({"exp": 10**300}, "no time"),
        ({"exp": NOW - SKEW_S}, "has expired"),
        ({"exp": 0}, "has expired"),
        ({"exp": -5}, "has expired"),
        ({"nbf": NOW + SKEW_S + 1}, "nbf"),
        ({"iat": NOW + SKEW_S + 1}, "iat"),
        ({"nbf": "soon"}, "no time"),
        ({"tenant": None}, "names no tenant"),
        ({"tenant": 7}, "names no tenant"),
        ({"tenant": ["alpha"]}, "names no tenant"),
        ({"tenant": {"name": "alpha"}}, "names no tenant"),
    ],
    ids=str,
)
def test_a_claim_that_does_not_hold_is_refused(
    issuer: InMemoryIssuer, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(Unauthenticated, match=why) as caught:
        verified(issuer.token(NOW, **changes), issuer)
    assert caught.value.wire_code == "invalid_api_key"


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW - SKEW_S + 1},
        {"nbf": NOW + SKEW_S},
        {"iat": NOW + SKEW_S},
        {"iat": None},
        {"aud": ["another", AUDIENCE]},
        {"sub": None},
        {"exp": int(NOW) + 60},
    ],
    ids=str,
)
def test_what_the_skew_and_the_standard_allow_is_taken(
    issuer: InMemoryIssuer, changes: dict[str, Any]
) -> None:
    assert verified(issuer.token(NOW, **changes), issuer).tenant == "alpha"


def test_the_tenant_is_in_the_claim_that_the_table_names(issuer: InMemoryIssuer) -> None:
    token = issuer.token(NOW, **{"https://a.test/org": "beta"})
    assert verified(token, issuer, tenant_claim="https://a.test/org").tenant == "beta"


@pytest.mark.parametrize("subject", [None, "", 7, ["a"]])
def test_a_subject_that_is_no_name_is_left_out(issuer: InMemoryIssuer, subject: Any) -> None:
    assert verified(issuer.token(NOW, sub=subject), issuer).subject == ""


def test_a_subject_is_a_hash_of_its_own_issuer(
    issuer: InMemoryIssuer, other_issuer: InMemoryIssuer
) -> None:
    subjects = {verified(one.token(NOW), one).subject for one in (issuer, other_issuer)}
    assert len(subjects) == 2
    assert hashlib.sha256(f"{NAME}\0user-1".encode()).hexdigest()[:16] in subjects


@pytest.mark.parametrize(
    "payload",
    [
        b'{"iss": "https://issuer.test", "iss": "https://issuer.test"}',
        b'{"iss": "https://issuer.test", "tenant": {"a": 1, "a": 2}}',
        b'{"iss": "https://issuer.test", "exp": NaN}',
        b'{"iss": "https://issuer.test", "exp": Infinity}',
        b'["https://issuer.test"]',
        b'"https://issuer.test"',
        b"[" * 5000,
        b"\xff\xfe",
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_payload_that_two_readers_could_read_differently_is_refused(
    issuer: InMemoryIssuer, payload: bytes
) -> None:
    with pytest.raises(Unauthenticated, match=REFUSED):
        verified(issuer.signed(payload, "EdDSA"), issuer)


def test_a_header_with_two_algorithms_is_refused(issuer: InMemoryIssuer) -> None:
    header = b'{"alg": "EdDSA", "kid": "EdDSA-1", "alg": "EdDSA"}'
    payload = json.dumps(issuer.claims(NOW)).encode()
    with pytest.raises(Unauthenticated, match=REFUSED):
        verified(issuer.raw(header, payload, "EdDSA"), issuer)


def test_a_token_above_the_bound_is_refused_unread(issuer: InMemoryIssuer) -> None:
    fits = issuer.token(NOW, more="x" * 4000)
    assert verified(fits, issuer).tenant == "alpha"
    for size in (MAX_TOKEN_BYTES, 1_000_000):
        with pytest.raises(Unauthenticated, match=REFUSED):
            verified(issuer.token(NOW, more="x" * size), issuer)


def test_one_changed_character_is_refused(issuer: InMemoryIssuer) -> None:
    token = issuer.token(NOW)

    @settings(max_examples=200)
    @given(at=st.integers(0, len(token) - 1), character=st.characters())
    def changed(at: int, character: str) -> None:
        other = token[:at] + character + token[at + 1 :]
        if other != token:
            with pytest.raises(Unauthenticated):
                verified(other, issuer)

    changed()


def test_a_truncated_token_is_refused(issuer: InMemoryIssuer) -> None:
    token = issuer.token(NOW)
    for length in range(len(token)):
        with pytest.raises(Unauthenticated):
            verified(token[:length], issuer)


@pytest.mark.parametrize("extra", ["=", "==", " ", "\n", ".", ".AAAA", "\u00e9"])
def test_text_around_a_token_is_refused(issuer: InMemoryIssuer, extra: str) -> None:
    token = issuer.token(NOW)
    for other in (token + extra, extra + token, token.replace(".", extra + ".", 1)):
        with pytest.raises(Unauthenticated):
            verified(other, issuer)


@settings(max_examples=100)
@given(text=st.text() | st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*", fullmatch=True))
def test_no_text_is_taken_for_a_token(text: str) -> None:
    with pytest.raises(Unauthenticated, match=REFUSED):
        verify_token(text, [config()], lambda name: KeySet(), NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a.b.c", True), ("..", True), ("my_a.b.c_secret", False), ("a.b", False), ("a.b.c.d", False)],
)
def test_a_key_whose_id_has_dots_is_no_token(text: str, expected: bool) -> None:
    assert looks_like_token(text) is expected
