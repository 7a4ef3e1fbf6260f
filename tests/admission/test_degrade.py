"""What is made smaller under pressure, and what never is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.admission.degrade import FULL, Asked, Capped, FellBack, degrade
from modelyard.config.overload import Overload
from modelyard.contract.operations import Kind, Operation
from modelyard.lifecycle.report import Description

SMALL = Description("small@1.0.0", Kind.GENERATOR, "0123456789abcdef", 2048, 512)
CAP = Overload(cap_output_tokens=128)
FALLBACK = Overload(fallback="small@1.0.0")
BOTH = Overload(cap_output_tokens=128, fallback="small@1.0.0")
PLAIN = Asked(input_tokens=100, cap_tokens=400)
TOOLS = [{"type": "function", "function": {"name": "f"}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}


def test_answers_are_capped_from_the_threshold_on() -> None:
    assert degrade(CAP, PLAIN, 0.49, None) is None
    assert degrade(CAP, PLAIN, 0.5, None) == Capped(128)
    assert degrade(CAP, PLAIN, 3.0, None) == Capped(128)
    late = Overload(cap_output_tokens=128, cap_at_percent=90)
    assert degrade(late, PLAIN, 0.89, None) is None
    assert degrade(late, PLAIN, 0.9, None) == Capped(128)


def test_what_the_queue_refuses_falls_back() -> None:
    assert degrade(FALLBACK, PLAIN, 0.99, SMALL) is None
    assert degrade(FALLBACK, PLAIN, FULL, SMALL) == FellBack("small@1.0.0")
    assert degrade(FALLBACK, PLAIN, FULL, None) is None


def test_of_both_the_cap_comes_first_and_the_fallback_alone() -> None:
    assert degrade(BOTH, PLAIN, 0.5, SMALL) == Capped(128)
    assert degrade(BOTH, PLAIN, FULL, SMALL) == FellBack("small@1.0.0")
    assert degrade(BOTH, PLAIN, FULL, None) == Capped(128)


@pytest.mark.parametrize(
    "changes",
    [
        {"names_version": True},
        {"uses_tools": True},
        {"is_structured": True},
        {"min_tokens": 129},
        {"cap_tokens": 128},
        {"cap_tokens": 20},
        {"cap_tokens": 0},
    ],
    ids=str,
)
def test_what_a_cap_would_spoil_or_not_change_is_not_capped(changes: dict[str, Any]) -> None:
    assert degrade(CAP, replace(PLAIN, **changes), FULL, None) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"names_version": True},
        {"uses_tools": True},
        {"cap_tokens": 513},
        {"input_tokens": 1649},  # with the cap of 400, one more than the context
    ],
    ids=str,
)
def test_what_the_smaller_model_cannot_give_does_not_fall_back(changes: dict[str, Any]) -> None:
    assert degrade(FALLBACK, replace(PLAIN, **changes), FULL, SMALL) is None


@pytest.mark.parametrize(
    "changes", [{"is_structured": True}, {"min_tokens": 300}, {"input_tokens": 1648}], ids=str
)
def test_what_it_can_give_does(changes: dict[str, Any]) -> None:
    fallback = replace(SMALL, max_output_tokens=None) if "min_tokens" in changes else SMALL
    assert degrade(BOTH, replace(PLAIN, **changes), FULL, fallback) == FellBack("small@1.0.0")


def test_the_bounds_themselves_are_within() -> None:
    assert degrade(CAP, replace(PLAIN, min_tokens=128), FULL, None) == Capped(128)
    most = replace(PLAIN, cap_tokens=512)
    assert degrade(FALLBACK, most, FULL, SMALL) == FellBack("small@1.0.0")


def test_it_is_said_in_a_word() -> None:
    assert Capped(128).said == "max_output_tokens=128"
    assert FellBack("small@1.0.0").said == "fallback=small@1.0.0"


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        (Operation.GENERATE, {"max_output_tokens": 400}, {}),
        (Operation.CHAT, {"tools": TOOLS}, {"uses_tools": True}),
        (Operation.CHAT, {"tools": []}, {}),
        (Operation.CHAT, {"response_format": SCHEMA}, {"is_structured": True}),
        (Operation.CHAT, {"response_format": {"type": "text"}}, {}),
        (Operation.COMPLETIONS, {"structured_outputs": {"regex": "a"}}, {"is_structured": True}),
        (Operation.COMPLETIONS, {"min_tokens": 200}, {"min_tokens": 200}),
        (Operation.COMPLETIONS, {"min_tokens": None}, {}),
        (
            Operation.RESPONSES,
            {"text": {"format": {"type": "json_object"}}, "tools": TOOLS},
            {"is_structured": True, "uses_tools": True},
        ),
    ],
)
def test_a_body_says_what_bears_on_it(
    operation: Operation, body: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert Asked.of("chat", operation, body, 100, 400) == replace(PLAIN, **expected)


def test_an_alias_names_no_version_and_a_version_does() -> None:
    assert not Asked.of("team/chat", Operation.CHAT, {}, 1, 1).names_version
    assert Asked.of("gen@1.0.0", Operation.CHAT, {}, 1, 1).names_version


sizes = st.integers(0, 5000)
asked = st.builds(Asked, sizes, sizes, sizes, st.booleans(), st.booleans(), st.booleans())
overloads = st.builds(
    Overload,
    cap_output_tokens=st.integers(1, 1000),
    cap_at_percent=st.floats(1, 100),
    fallback=st.none() | st.just("small@1.0.0"),
)
pressures = st.floats(0, 4)


@given(overloads, asked, pressures, st.none() | st.just(SMALL))
@settings(max_examples=200)
def test_nothing_grows_and_nothing_is_promised_that_cannot_be_given(
    overload: Overload, asked: Asked, pressure: float, fallback: Description | None
) -> None:
    match degrade(overload, asked, pressure, fallback):
        case Capped(cap):
            assert asked.min_tokens <= cap < asked.cap_tokens
            assert pressure * 100 >= overload.cap_at_percent
            assert not any((asked.uses_tools, asked.is_structured, asked.names_version))
        case FellBack():
            assert pressure >= FULL
            assert fallback is not None
            assert asked.input_tokens + asked.cap_tokens <= fallback.max_context_tokens
            assert not any((asked.uses_tools, asked.names_version))


@given(overloads, asked, pressures, pressures)
@settings(max_examples=200)
def test_more_pressure_never_gives_more(
    overload: Overload, asked: Asked, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    if degrade(overload, asked, low, None) is not None:
        assert degrade(overload, asked, high, None) is not None
