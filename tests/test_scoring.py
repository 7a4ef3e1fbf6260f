import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from modelyard.scoring import (
    bi_encoder_scores,
    cross_encoder_scores,
    late_interaction_scores,
    mean_pool,
    normalise,
)


def random_texts(seed: int, texts: int, tokens: int) -> tuple[Tensor, Tensor]:
    """Token vectors [B, T, 4] and a mask with at least one token of each text."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(texts, tokens, 4, generator=generator)
    mask = (torch.rand(texts, tokens, generator=generator) > 0.4).long()
    mask[:, 0] = 1
    return hidden, mask


def test_mean_pool_by_hand() -> None:
    hidden = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [100.0, 100.0]]])
    assert mean_pool(hidden, torch.tensor([[1, 1, 0]])).tolist() == [[2.0, 3.0]]


def test_a_text_without_tokens_pools_to_zero() -> None:
    assert mean_pool(torch.ones(1, 2, 2), torch.zeros(1, 2)).tolist() == [[0.0, 0.0]]


def test_bf16_is_summed_in_fp32() -> None:
    hidden = torch.full((1, 256, 1), 1.0078125, dtype=torch.bfloat16)
    pooled = mean_pool(hidden, torch.ones(1, 256))
    assert pooled.dtype == torch.float32
    assert pooled.item() == 1.0078125


def test_normalise_gives_unit_vectors_and_keeps_zero() -> None:
    lengths = normalise(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).norm(dim=-1)
    assert lengths.tolist() == pytest.approx([1.0, 0.0])


def test_bi_encoder_scores_of_the_same_the_opposite_and_a_right_angle() -> None:
    query = torch.tensor([[2.0, 0.0]])
    passages = torch.tensor([[5.0, 0.0], [-1.0, 0.0], [0.0, 3.0]])
    assert bi_encoder_scores(query, passages).tolist() == [1.0, 0.0, 0.5]


def test_late_interaction_equals_the_loops_it_stands_for() -> None:
    queries, query_mask = random_texts(1, 1, 5)
    passages, passage_mask = random_texts(2, 3, 7)
    got = late_interaction_scores(queries, query_mask, passages, passage_mask)
    for passage in range(3):
        best = []
        for token in range(5):
            if query_mask[0, token]:
                cosines = [
                    torch.cosine_similarity(queries[0, token], passages[passage, other], dim=0)
                    for other in range(7)
                    if passage_mask[passage, other]
                ]
                best.append(max(cosine.item() for cosine in cosines))
        assert got[passage].item() == pytest.approx((1 + sum(best) / len(best)) / 2, abs=1e-5)


def test_a_passage_without_tokens_scores_zero() -> None:
    query, passages = torch.ones(1, 2, 2), torch.ones(1, 3, 2)
    scores = late_interaction_scores(query, torch.ones(1, 2), passages, torch.zeros(1, 3))
    assert scores.tolist() == [0.0]


def test_cross_encoder_scores_are_the_sigmoid_of_either_shape() -> None:
    logits = torch.tensor([0.0, 20.0, -20.0])
    assert cross_encoder_scores(logits).tolist() == pytest.approx([0.5, 1.0, 0.0], abs=1e-6)
    assert torch.equal(cross_encoder_scores(logits.unsqueeze(-1)), cross_encoder_scores(logits))


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(0, 4))
def test_padding_changes_no_score_and_all_lie_in_the_unit_interval(
    seed: int, tokens: int, padding: int
) -> None:
    query, query_mask = random_texts(seed, 1, 4)
    passages, mask = random_texts(seed + 1, 3, tokens)
    longer = torch.nn.functional.pad(passages, (0, 0, 0, padding), value=7.0)
    longer_mask = torch.nn.functional.pad(mask, (0, padding))
    pooled_query = mean_pool(query, query_mask)
    for plain, padded in (
        (
            late_interaction_scores(query, query_mask, passages, mask),
            late_interaction_scores(query, query_mask, longer, longer_mask),
        ),
        (
            bi_encoder_scores(pooled_query, mean_pool(passages, mask)),
            bi_encoder_scores(pooled_query, mean_pool(longer, longer_mask)),
        ),
    ):
        assert torch.allclose(plain, padded, atol=1e-5)
        assert bool(((plain >= 0) & (plain <= 1)).all())
