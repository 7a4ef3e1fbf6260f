from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.prefix_sums import PrefixSums

changes = st.lists(st.tuples(st.sampled_from(["grow", "shrink", "add"]), st.integers(0, 50)))


@given(changes)
def test_it_agrees_with_plain_sums_however_it_grows_and_shrinks(
    moves: list[tuple[str, int]],
) -> None:
    sums, plain = PrefixSums(), list[int]()
    for move, number in moves:
        if move == "grow":
            sums.append_zero()
            plain.append(0)
        elif plain and move == "shrink":
            sums.pop()
            plain.pop()
        elif plain:
            sums.add(number % len(plain), number - 20)
            plain[number % len(plain)] += number - 20
        assert len(sums) == len(plain)
        assert [sums[i] for i in range(len(plain))] == plain
        assert [sums.of_first(i) for i in range(len(plain) + 2)] == [
            sum(plain[:i]) for i in range(len(plain) + 2)
        ]
