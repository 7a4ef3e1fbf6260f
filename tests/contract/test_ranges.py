from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.ranges import FLAGS, NUMBERS, check_ranges


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value", ["1", True, None, [1], {}, float("inf"), float("nan"), -(10**400)]
)
def test_what_is_no_number_in_range_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"^{name} must be a ") as caught:
        check_ranges({name: value})
    assert caught.value.param == name


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_true_or_false(name: str) -> None:
    check_ranges({name: False})
    with pytest.raises(InvalidRequest, match="true or false"):
        check_ranges({name: 0})


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0, "top_p": 1, "min_p": 0.5, "top_k": -1},
        {"temperature": 2.0, "frequency_penalty": -2, "presence_penalty": 2},
        {"seed": -(2**63), "repetition_penalty": 1e-3, "min_tokens": 0},
        {"unknown": "x"},
    ],
)
def test_what_people_send_passes(fields: dict[str, Any]) -> None:
    check_ranges(fields)


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", 2.01), ("top_p", 0), ("top_k", 1.0), ("top_k", 2**31), ("seed", 2**63)],
)
def test_the_ends_of_a_range_hold(name: str, value: float) -> None:
    with pytest.raises(InvalidRequest):
        check_ranges({name: value})


def test_an_end_of_a_range_is_told_to_its_last_digit() -> None:
    with pytest.raises(InvalidRequest, match=f" from -{2**63} to {2**63 - 1}$"):
        check_ranges({"seed": "x"})
    with pytest.raises(InvalidRequest, match=r" above 0 to 1$"):
        check_ranges({"top_p": 0})


@given(st.sampled_from(sorted(NUMBERS)), st.integers() | st.floats(allow_nan=False))
def test_the_schema_says_the_same(name: str, value: float) -> None:
    schema = NUMBERS[name].schema()
    inside = schema.get("minimum", value) <= value <= schema.get("maximum", value)
    inside = inside and value > schema.get("exclusiveMinimum", float("-inf"))
    whole = schema["type"] == "number" or isinstance(value, int)
    assert NUMBERS[name].holds(value) == (inside and whole and value < float("inf"))
