from collections.abc import Callable

import pytest

from modelyard.contract.ebnf import cost_of_ebnf
from modelyard.contract.errors import InvalidRequest

Steps = Callable[..., int]


def test_a_grammar_costs_what_its_costliest_rule_does_with_the_rules_it_names() -> None:
    grammar = """
        root ::= "SELECT " column " FROM " table  # a comment ::= (((
        column ::= [a-z]{1,8} | "a ::= b"
        table ::= column "." column
    """
    assert cost_of_ebnf(grammar).states == 2 + 9 + 1 + 2 * 9


@pytest.mark.parametrize(
    ("grammar", "why"),
    [
        ('root ::= root "a" | "b"', "calls itself"),
        ("root ::= a\na ::= b*\nb ::= a", "calls itself"),
        ("root ::= nobody", "does not define"),
        ("root ::= a{200}\na ::= [a-z]{200}", "states"),
        ("root ::= a a a a\na ::= [a-z]{0,8}", "ways"),
        ('start: "a"', "must be EBNF"),
        ('start: "#" ::= b', "must be EBNF"),
        ("", "must be EBNF"),
        ("\n".join(f"r{i} ::= r{i + 1}" for i in range(100)), "deep"),
        ("\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(20)) + '\nr20 ::= "a"', "states"),
    ],
)
def test_a_grammar_that_cannot_be_bounded_is_refused(grammar: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        cost_of_ebnf(grammar)


@pytest.mark.parametrize(
    "text", ['"' * 1000, "[" * 1000, "a ::=" * 200, "a ::= {" * 145, "|" * 1000, '"a"|' * 250]
)
def test_a_hostile_grammar_of_twice_the_length_costs_twice(steps: Steps, text: str) -> None:
    once, twice = (steps(cost_of_ebnf, "root ::= " + text * times) for times in (1, 2))
    assert twice < 2.2 * once + 100
