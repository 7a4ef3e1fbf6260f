from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.envelope import Answer, Envelope, Failure, Item, Usage
from modelyard.contract.errors import Unauthenticated
from modelyard.contract.frames import pack, pack_envelope, unpack, unpack_envelope

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
tokens = st.integers(0, 2**31)
usages = st.builds(Usage, tokens, tokens, words, tokens)
items = st.builds(Item, st.binary(max_size=300), tokens, st.none() | usages)
failures = st.builds(
    Failure,
    words,
    words,
    param=st.none() | words,
    reason=st.none() | words,
    wire_code=st.none() | words,
    retryable=st.none() | st.booleans(),
    retry_after_s=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
envelopes = st.builds(
    Envelope,
    claim=words,
    version=words,
    operation=words,
    body=st.binary(max_size=300),
    stream=st.booleans(),
    budget_ms=st.integers(),
    band=words,
    request_id=words,
    answer_id=words,
    model_alias=words,
    attempt=st.integers(1, 2),
    traceparent=st.none() | words,
    labels=st.lists(st.tuples(words, words), max_size=3).map(tuple),
)


@given(items | failures)
def test_an_answer_comes_out_as_it_went_in(answer: Answer) -> None:
    again = unpack(pack(answer))
    assert again == answer
    assert type(again) is type(answer)


@given(envelopes)
def test_an_envelope_comes_out_as_it_went_in(envelope: Envelope) -> None:
    assert unpack_envelope(pack_envelope(envelope)) == envelope


@given(st.binary(max_size=100) | st.none() | st.text(max_size=5) | st.lists(st.integers()))
def test_what_is_no_envelope_is_a_stray(frame: Any) -> None:
    with pytest.raises(Unauthenticated):
        unpack_envelope(frame)


@pytest.mark.parametrize("header", [b"[]", b"{}", b"7", b"[1,2,3,4,5,6,7,8,9,10,11,12]", b"\xff"])
def test_a_frame_with_another_header_is_a_stray(header: bytes) -> None:
    with pytest.raises(Unauthenticated):
        unpack_envelope(len(header).to_bytes(4, "big") + header)
