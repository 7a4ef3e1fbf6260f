import pytest

from modelyard.contract.token_ids import count_items, is_token_ids


@pytest.mark.parametrize("value", [[], [0], [1, 2**31 - 1]])
def test_a_list_of_whole_numbers_is_token_ids(value: object) -> None:
    assert is_token_ids(value)


@pytest.mark.parametrize("value", [None, 1, "1", (1,), [True], [-1], [2**31], [1.0], ["1"], [[1]]])
def test_nothing_else_is(value: object) -> None:
    assert not is_token_ids(value)


def test_items_are_counted_with_those_of_the_lists_among_them() -> None:
    assert count_items([1, 2, 3]) == 3
    assert count_items(["abc", [1, 2], []]) == 5
