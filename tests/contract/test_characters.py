import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.characters import ANY, bits_of


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("a", "a", True),
        ("a", "b", False),
        (".", "x", True),
        ("[a-y]", "z", False),
        ("[^a-y]", "z", True),
        ("[^z]", "z", False),
        (r"\d", "[0-9]", True),
        (r"\d", r"\D", False),
        (r"\w", r"\s", False),
        (r"\.", "[.]", True),
        (r"[\]-]", "]", True),
        ("[-a]", "-", True),
        ("\u00e9", "\u00fc", True),  # others are not told apart
        (r"[\u0100-\u0200]", "a", True),  # nor are escapes of numbers read
        (r"[^\u0041]", "a", True),
        (r"[^\x00-\x1f]", "a", True),
        ("[^a-f-]", "-", False),
    ],
)
def test_two_pieces_meet_where_they_can_match_the_same(one: str, other: str, meet: bool) -> None:
    assert bool(bits_of(one) & bits_of(other)) == meet


CLASSES = st.lists(st.sampled_from(["a-f", "x", "0-9", r"\d", r"\s", r"\]", "_", "."]), min_size=1)


@given(CLASSES, st.booleans(), st.characters(max_codepoint=127))
def test_a_class_holds_whatever_pythons_does(parts: list[str], negated: bool, one: str) -> None:
    text = f"[{'^' if negated else ''}{''.join(parts)}]"
    if re.fullmatch(text, one, re.ASCII):
        assert bits_of(text) & bits_of("\\" + one if not one.isalnum() else one)
    assert 0 < bits_of(text) <= ANY
