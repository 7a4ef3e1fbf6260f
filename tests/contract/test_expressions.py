from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.expressions import MAX_STATES, cost_of_regex

Steps = Callable[..., int]


@pytest.mark.parametrize(
    ("regex", "states", "nested"),
    [
        ("", 0, 0),
        ("abc", 3, 0),
        ("a|bc", 3, 0),
        (r"\d{3}", 3, 1),
        ("(ab){2,3}c", 7, 1),
        ("(a+)+b", 2, 2),
        ("a+?b*?", 2, 1),
        (r"[\](+*){2}]+\(", 2, 1),
        ("a{2,}", 2, 1),
        ("a{,3}", 3, 1),
        ("))a", 3, 0),
        ("((a", 1, 0),
        ("*a", 1, 0),
    ],
)
def test_repetitions_are_written_out_and_counted(regex: str, states: int, nested: int) -> None:
    cost = cost_of_regex(regex)
    assert (cost.states, cost.nested) == (states, nested)


@pytest.mark.parametrize(
    "regex",
    [
        "^[a-zA-Z0-9._%+-]{1,64}@[a-zA-Z0-9.-]{1,200}\\.[a-zA-Z]{2,24}$",
        r"^\d{4}(-\d{2}(-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?)?)?$",
        r"^(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$",
        r"\+?\d{1,3}[-. ]?\d{3,4}[-. ]?\d{4}",
        r"([A-Z][a-z]{1,20} ){1,12}[a-z]+\.",
        r"(\w{1,20}\s){0,10}\w{1,20}",
        "[a-z0-9]+(-[a-z0-9]+)*",
        "[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        r"(?:Mon|Tue), \d{1,2} \w{3,9} \d{4}",
        "#?([a-f0-9]{6}|[a-f0-9]{3})",
        r"-?\d{1,10}(\.\d{1,4})?(e[+-]?\d{1,3})?",
        r"\$\d{1,3}(,\d{3})*(\.\d{2})?",
        r"v?\d{1,3}\.\d{1,3}\.\d{1,3}(-[a-z0-9.]{1,30})?",
        "(GET|PUT|POST)(,(GET|PUT|POST))*",
        "(foo|far|x)*",
        "([a-z]+, ){1,9}[a-z]+",
        r"(\w+\s){0,50}\w+",
        "[^,]{1,60},[^,]{1,60},[^,]{1,60}",
    ],
)
def test_patterns_that_people_write_pass(regex: str) -> None:
    cost_of_regex(regex)


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        ("(a{0,256}){0,256}", "states"),
        ("((a+)+)+", "repetitions in repetitions"),
        ("(" * 40 + ")" * 40, "groups in groups"),
        ("a{257}", "repeats more than"),
        ("a{1," + "9" * 5000 + "}", "repeats more than"),
        (".{0,8}" * 4, "ways"),
        ("(.|..|...)*", "ways"),
        ("(a|[ab]c){0,20}", "ways"),
        ("((.|..|...)+|(.|..|....)+)+", "ways"),
        ("(a||b){10}", "ways"),
        (".?" * 32, "ways"),
        ("(.{0,8}){4}", "ways"),
        ("(.{0,8})*", "ways"),
        ("(.?.?.?)+", "ways"),
        ("(.{3,}b){0,9}", "ways"),
        ("([^a]*){3,}", "ways"),
        ("(([^a]| ){3,}){0,3}", "ways"),
        (".{0,8}." * 4, "ways"),
        ("([a-y]{0,8}|z){4}", "ways"),
        ("[a-y]{0,8}z?[a-y]{0,8}z?[a-y]{0,8}", "ways"),
        ("([a-y]{0,8}z*){5}", "ways"),
        (r"([^a]{0,8}[\u0100-\u0200]{0,9}[\x41-\x42]{0,9})", "ways"),
    ],
)
def test_what_costs_too_much_is_refused_with_the_reason(regex: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        cost_of_regex(regex)


@pytest.mark.parametrize(
    "text",
    ["[" * 512, "{" * 512, "{1" * 256, "(" * 512, "\\" * 511, "a?" * 256, "|" * 1000, "a|" * 500],
)
def test_a_hostile_pattern_of_twice_the_length_costs_twice(steps: Steps, text: str) -> None:
    """A reader that does more would be as good a way to hold up the ingress."""
    once, twice = (steps(cost_of_regex, text * times) for times in (1, 2))
    assert twice < 2.2 * once + 100


def test_alternatives_that_read_one_text_differently_are_rivals() -> None:
    assert cost_of_regex("ab|a|[ab]c|cd").ways == 3
    assert cost_of_regex("a|b|cd").ways == 1
    assert cost_of_regex("ab|ac").ways == 1


@given(st.text(alphabet="ab[](){}|*+?,0129^-\\.\n", max_size=60))
def test_any_text_has_a_bounded_cost_or_is_refused(text: str) -> None:
    try:
        cost = cost_of_regex(text)
    except InvalidRequest:
        return
    assert 0 <= cost.states <= MAX_STATES
    assert cost.ways >= 1
