import base64
import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import Unauthenticated
from modelyard.tenancy.claim import Claim, _mac, cache_salt, sign, verify

SECRET = b"s" * 32
CLAIM = Claim("alpha", "alpha-1", "paid", "eu", "interactive", ("invoke",), ("*",))
TOKEN = sign(CLAIM, SECRET)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
CLAIMS = st.builds(
    Claim,
    tenant=TEXT,
    key_id=TEXT,
    tier=TEXT,
    region=TEXT,
    priority=TEXT,
    roles=st.lists(TEXT).map(tuple),
    models=st.lists(TEXT).map(tuple),
    arms=st.lists(TEXT).map(tuple),
    max_context_tokens=st.none() | st.integers(1),
    features=st.none() | st.lists(TEXT).map(tuple),
    subject=TEXT,
)


@given(claim=CLAIMS, secret=st.binary(min_size=32))
def test_a_signed_claim_is_verified_to_itself(claim: Claim, secret: bytes) -> None:
    token = sign(claim, secret)
    assert token.isascii()
    assert verify(token, secret) == claim
    assert sign(claim, secret) == token


@given(text=st.text() | st.text(st.characters(), max_size=60) | st.from_regex(r"[\w=-]*\.[\w-]*"))
def test_any_text_that_was_not_signed_is_unauthenticated(text: str) -> None:
    with pytest.raises(Unauthenticated, match="no valid claim"):
        verify(text, SECRET)


@given(at=st.integers(0, len(TOKEN) - 1), character=st.characters())
def test_one_changed_character_is_unauthenticated(at: int, character: str) -> None:
    changed = TOKEN[:at] + character + TOKEN[at + 1 :]
    if changed == TOKEN:
        assert verify(changed, SECRET) == CLAIM
        return
    with pytest.raises(Unauthenticated):
        verify(changed, SECRET)


@pytest.mark.parametrize("where", ["before", "after", "around the dot"])
@given(extra=st.text(st.characters(), min_size=1, max_size=5))
def test_text_added_to_a_token_is_unauthenticated(where: str, extra: str) -> None:
    payload, _, signature = TOKEN.partition(".")
    changed = {
        "before": extra + TOKEN,
        "after": TOKEN + extra,
        "around the dot": f"{payload}{extra}.{signature}",
    }[where]
    with pytest.raises(Unauthenticated):
        verify(changed, SECRET)


def test_a_lone_surrogate_is_unauthenticated() -> None:
    for token in ("\ud800", f"{TOKEN}\udfff", f"\ud800.{TOKEN}"):
        with pytest.raises(Unauthenticated):
            verify(token, SECRET)


@given(length=st.integers(0, len(TOKEN) - 1))
def test_a_truncated_token_is_unauthenticated(length: int) -> None:
    with pytest.raises(Unauthenticated):
        verify(TOKEN[:length], SECRET)


def test_a_token_of_another_installation_is_unauthenticated() -> None:
    with pytest.raises(Unauthenticated):
        verify(TOKEN, b"t" * 32)


def test_each_tenant_has_a_cache_salt_of_its_own() -> None:
    salts = {cache_salt(tenant, SECRET) for tenant in ("alpha", "beta", "")}
    assert len(salts) == 3
    assert cache_salt("alpha", SECRET) == cache_salt("alpha", SECRET)
    assert cache_salt("alpha", b"t" * 32) not in salts
    assert "alpha" not in cache_salt("alpha", SECRET)


def test_a_claim_of_an_earlier_release_has_the_stable_arm_alone() -> None:
    """Ingresses and replicas are never replaced at one moment."""
    record = asdict(CLAIM)
    for name in ("arms", "max_context_tokens", "features", "subject"):
        del record[name]
    payload = base64.urlsafe_b64encode(json.dumps(record).encode())
    claim = verify(f"{payload.decode()}.{_mac(payload, SECRET)}", SECRET)
    assert claim == CLAIM
    assert claim.arms == ("stable",)


@pytest.mark.parametrize("text", ["[]", "1", "{}", '{"tenant": "a"}', '{"root": true}'])
def test_a_signed_text_that_is_no_claim_is_of_another_release(text: str) -> None:
    payload = base64.urlsafe_b64encode(text.encode())
    with pytest.raises(Unauthenticated, match="another release"):
        verify(f"{payload.decode()}.{_mac(payload, SECRET)}", SECRET)


@pytest.mark.parametrize(
    ("models", "alias", "expected"),
    [(("*",), "any", True), (("a", "b"), "b", True), (("a",), "b", False), ((), "a", False)],
)
def test_a_claim_may_use_what_it_names(models: tuple[str, ...], alias: str, expected: bool) -> None:
    assert replace(CLAIM, models=models).may_use(alias) is expected
