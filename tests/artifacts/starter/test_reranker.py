import pytest

from modelyard.artifacts.manifest import ScoreKind
from modelyard.artifacts.starter.reranker import better


@pytest.mark.parametrize(
    ("bi", "late", "winner"),
    [
        (0.90, 0.86, "bi-encoder"),
        (0.86, 0.90, "late-interaction"),
        (0.8703, 0.8714, "bi-encoder"),
    ],
)
def test_the_better_kind_wins_and_within_noise_the_cheaper_one(
    bi: float, late: float, winner: ScoreKind
) -> None:
    assert better({"bi-encoder": bi, "late-interaction": late}) == winner
