from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.pricing import Choice, best_pattern, worth

choices = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 6), st.integers(0, 6)), st.integers(1, 50), st.integers(1, 3)
    ),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(choices, st.integers(0, 12), st.integers(0, 12))
def test_no_content_that_fits_is_worth_more(
    drawn: list[tuple[tuple[int, int], int, int]], memory: int, compute: int
) -> None:
    own = [Choice(index, *one) for index, one in enumerate(drawn)]
    value, chosen = best_pattern(own, (memory, compute))

    def fits(copies: tuple[int, ...]) -> bool:
        pairs = list(zip(own, copies, strict=True))
        return all(
            sum(one.need[dimension] * number for one, number in pairs) <= room
            for dimension, room in enumerate((memory, compute))
        )

    def total(copies: tuple[int, ...]) -> int:
        return sum(one.value * number for one, number in zip(own, copies, strict=True))

    every = filter(fits, product(*(range(one.most + 1) for one in own)))
    found = tuple(chosen.get(one.type, 0) for one in own)
    assert value == max(map(total, every))
    assert fits(found)
    assert total(found) == value
    assert int(worth(own, (memory, compute))[memory, compute]) == value


def test_worth_of_less_room_is_not_more() -> None:
    table = worth([Choice(0, (3, 1), 5, 9), Choice(1, (2, 4), 6, 9)], (10, 10))

    assert (table[1:] >= table[:-1]).all()
    assert (table[:, 1:] >= table[:, :-1]).all()
