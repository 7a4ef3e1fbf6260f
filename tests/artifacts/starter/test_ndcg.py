from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.artifacts.starter.ndcg import ndcg

graded = st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1)), min_size=1, max_size=8).filter(
    lambda rows: any(grade for grade, _ in rows)
)


def test_the_best_order_scores_one() -> None:
    assert ndcg([2, 1, 0], [0.9, 0.5, 0.1], 5) == 1.0


def test_a_swap_by_hand() -> None:
    got = ndcg([2, 1, 0], [0.5, 0.9, 0.1], 5)
    assert got == pytest.approx((1 + 3 / log2(3)) / (3 + 1 / log2(3)))


def test_ranks_below_k_do_not_count() -> None:
    assert ndcg([0, 2], [0.9, 0.1], 1) == 0.0


def test_equal_scores_gain_nothing() -> None:
    assert ndcg([2, 0], [0.5, 0.5], 5) == ndcg([0, 2], [0.5, 0.5], 5) < 1.0


@given(graded)
def test_it_stays_between_zero_and_one(rows: list[tuple[int, float]]) -> None:
    assert 0.0 <= ndcg([grade for grade, _ in rows], [score for _, score in rows], 5) <= 1.0


@given(graded, st.randoms(use_true_random=False))
def test_the_order_of_the_file_does_not_matter(rows: list[tuple[int, float]], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = random.sample(rows, len(rows))
    figures = [ndcg([g for g, _ in r], [s for _, s in r], 5) for r in (rows, shuffled)]
    assert figures[0] == pytest.approx(figures[1])


def test_a_set_without_a_relevant_passage_is_refused() -> None:
    with pytest.raises(ValueError, match="leave such a set out"):
        ndcg([0, 0], [0.1, 0.2], 5)


def test_a_score_for_each_grade() -> None:
    with pytest.raises(ValueError, match="one for each"):
        ndcg([1], [0.1, 0.2], 5)
