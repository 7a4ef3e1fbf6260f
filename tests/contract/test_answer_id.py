import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract import answer_id
from modelyard.contract.answer_id import PREFIXES, AnswerId, mint, read
from modelyard.contract.errors import InvalidRequest

SECRET = b"s" * 32
ANSWER = AnswerId("gen@1.0.0", "stable", "", 1_700_000_000, b"nonce!")
MINTED = mint(ANSWER, "alpha", SECRET)

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ANSWERS = st.builds(
    AnswerId,
    version=NAMES,
    arm=NAMES,
    rollout=NAMES,
    time_s=st.integers(0, 2**40 - 1),
    nonce=st.binary(min_size=6, max_size=6),
    conversation=st.from_regex(r"([0-9a-f]{12})?", fullmatch=True),
)


@given(answer=ANSWERS, tenant=NAMES, secret=st.binary(min_size=32))
def test_what_was_minted_is_read_back(answer: AnswerId, tenant: str, secret: bytes) -> None:
    text = mint(answer, tenant, secret)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text)
    assert read(text, tenant, secret) == answer


def test_an_id_of_no_conversation_is_no_longer_than_before_there_were_any() -> None:
    named = AnswerId("gen@1.0.0", "canary", "r-1", 0, b"nonce!", "0123456789ab")
    assert read(mint(named, "alpha", SECRET), "alpha", SECRET).conversation == "0123456789ab"
    assert len(MINTED) < len(mint(replace(ANSWER, conversation="0" * 12), "alpha", SECRET))


@pytest.mark.parametrize("prefix", ["chatcmpl-", "cmpl-"])
def test_an_id_is_read_as_an_openai_route_showed_it(prefix: str) -> None:
    assert prefix in PREFIXES
    assert read(prefix + MINTED, "alpha", SECRET) == ANSWER
    with pytest.raises(InvalidRequest):
        read(prefix + MINTED, "beta", SECRET)


@pytest.mark.parametrize("prefix", ["cmpl-cmpl-", "chatcmpl-cmpl-", "chatcmpl", "embd-"])
def test_any_other_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidRequest, match="not one of ours"):
        read(prefix + MINTED, "alpha", SECRET)


def test_a_minted_id_that_begins_like_a_prefix_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_id, "PREFIXES", (MINTED[:5],))
    assert read(MINTED, "alpha", SECRET) == ANSWER
    assert read(MINTED[:5] + MINTED, "alpha", SECRET) == ANSWER


@given(
    text=st.text() | st.text(st.characters(), max_size=80) | st.from_regex(r"[\w+/=-]{0,90}"),
    tenant=NAMES,
)
def test_any_other_text_is_an_invalid_request(text: str, tenant: str) -> None:
    with pytest.raises(InvalidRequest, match="not one of ours") as caught:
        read(text, tenant, SECRET)
    assert caught.value.param == "id"


def test_a_lone_surrogate_is_an_invalid_request() -> None:
    with pytest.raises(InvalidRequest):
        read("\ud800" + MINTED, "alpha", SECRET)


@given(length=st.integers(0, len(MINTED) - 1))
def test_a_truncated_id_is_refused(length: int) -> None:
    with pytest.raises(InvalidRequest):
        read(MINTED[:length], "alpha", SECRET)


@given(at=st.integers(0, len(MINTED) - 1), character=st.characters(codec="ascii"))
def test_a_changed_character_is_refused_or_changes_nothing(at: int, character: str) -> None:
    changed = MINTED[:at] + character + MINTED[at + 1 :]
    try:
        answer = read(changed, "alpha", SECRET)
    except InvalidRequest:
        assert changed != MINTED
        return
    # base64's last character has spare bits: other text, but the same signed bytes.
    assert answer == ANSWER


@pytest.mark.parametrize(
    ("tenant", "secret"),
    [("beta", SECRET), ("alpha", b"t" * 32), ("", SECRET), ("alpha\0", SECRET)],
)
def test_an_id_of_another_tenant_or_installation_is_refused(tenant: str, secret: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read(MINTED, tenant, secret)


def test_the_id_does_not_name_its_tenant() -> None:
    assert len(mint(ANSWER, "alpha", SECRET)) == len(mint(ANSWER, "a" * 64, SECRET))


@pytest.mark.parametrize("nonce", [b"", b"short", b"too long"])
def test_a_nonce_of_another_size_is_a_bug_of_the_caller(nonce: bytes) -> None:
    with pytest.raises(ValueError, match="6 bytes"):
        mint(AnswerId("m@1", "stable", "", 0, nonce), "alpha", SECRET)
