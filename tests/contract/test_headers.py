import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.headers import REQUEST_ID, listed, request_id_of, traceparent_of

TRACE = "00-" + "0af7651916cd43dd8448eb211c80319c" + "-b7ad6b7169203331-01"


@given(given_id=st.from_regex(r"[A-Za-z0-9._-]{1,128}", fullmatch=True))
def test_a_well_formed_request_id_is_kept(given_id: str) -> None:
    assert request_id_of({REQUEST_ID: given_id}) == given_id


@pytest.mark.parametrize("bad", ["", "a b", "a\r\nSet-Cookie: x", "\u00e9", "a" * 129, "a\n"])
def test_any_other_request_id_is_replaced(bad: str) -> None:
    assert re.fullmatch(r"req_[0-9a-f]{24}", request_id_of({REQUEST_ID: bad}))


def test_minted_request_ids_differ() -> None:
    assert request_id_of({}) != request_id_of({})


@pytest.mark.parametrize(
    ("given_trace", "expected"),
    [(TRACE, TRACE), ("", None), (TRACE.upper(), None), (TRACE + "-more", None), ("x", None)],
)
def test_only_a_well_formed_traceparent_is_passed_on(
    given_trace: str, expected: str | None
) -> None:
    assert traceparent_of({"traceparent": given_trace}) == expected


def test_field_names_are_listed_with_a_comma() -> None:
    assert listed(("alpha", "beta.gamma")) == "alpha, beta.gamma"


@given(names=st.lists(st.text()).map(tuple))
def test_whatever_a_caller_named_is_safe_in_a_header(names: tuple[str, ...]) -> None:
    header = listed(names)
    assert re.fullmatch(r"[A-Za-z0-9._, -]*", header)
    assert len(header) <= 32 * 66


def test_a_header_lists_at_most_32_names() -> None:
    assert listed(tuple(f"f{index}" for index in range(100))).count(",") == 31
