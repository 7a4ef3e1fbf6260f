from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.sampling import check_sampling


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stop", "x"),
        ("stop", []),
        ("stop", ["a", "b", "c", "d"]),
        ("logit_bias", {}),
        ("logit_bias", {"0": 100, "151935": -99.5}),
        ("stop_token_ids", [0, 2**31 - 1]),
        ("logprobs", True),
        ("logprobs", 20),
        ("top_logprobs", 0),
    ],
)
def test_a_field_within_its_bounds_passes(name: str, value: object) -> None:
    check_sampling({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stop", ""),
        ("stop", ["a", ""]),
        ("stop", ["a"] * 5),
        ("stop", [1]),
        ("stop", {"a": 1}),
        ("logit_bias", {str(n): 1 for n in range(1025)}),
        ("logit_bias", {"x": 1}),
        ("logit_bias", {"-1": 1}),
        ("logit_bias", {"9" * 11: 1}),
        ("logit_bias", {"1": 101}),
        ("logit_bias", {"1": float("inf")}),
        ("logit_bias", {"1": float("nan")}),
        ("logit_bias", {"1": True}),
        ("logit_bias", {"1": "2"}),
        ("logit_bias", [1]),
        ("stop_token_ids", [1] * 1025),
        ("stop_token_ids", [True]),
        ("stop_token_ids", [-1]),
        ("stop_token_ids", 1),
        ("logprobs", 21),
        ("logprobs", -1),
        ("top_logprobs", 21),
        ("top_logprobs", True),
        ("top_logprobs", 1.0),
    ],
)
def test_a_field_out_of_its_bounds_is_named(name: str, value: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_sampling({name: value})
    assert caught.value.param == name


def test_several_choices_need_a_temperature() -> None:
    check_sampling({"n": 1, "temperature": 0})
    check_sampling({"n": 2})
    with pytest.raises(InvalidRequest, match="temperature") as caught:
        check_sampling({"n": 2, "temperature": 0.0})
    assert caught.value.param == "n"


NAMES = st.sampled_from(["stop", "logit_bias", "stop_token_ids", "logprobs", "top_logprobs"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.dictionaries(NAMES, JSON))
def test_any_json_passes_or_is_a_request_error(fields: dict[str, Any]) -> None:
    try:
        check_sampling(fields)
    except InvalidRequest:
        return
    assert len(fields.get("stop_token_ids", [])) <= 1024
