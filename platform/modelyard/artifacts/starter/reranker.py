"""minilm-reranker: the backbone as a bi-encoder or by late interaction, whichever ranks better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from modelyard.artifacts.manifest import Identity, ScoreKind
from modelyard.artifacts.starter import backbone
from modelyard.artifacts.starter.folder import remove_noise
from modelyard.artifacts.starter.ndcg import ndcg
from modelyard.artifacts.starter.quiet import quiet_transformers
from modelyard.artifacts.starter.recipe import VERSION, Recipe, read_data
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

if TYPE_CHECKING:
    from torch import Tensor

NAME: Final = "minilm-reranker"
SETS: Final = "rerank_sets.json"
MIN_NDCG_AT_5: Final = 0.85
# A difference below this is noise on some thirty sets (and could turn with the last bits of a sum
# on another machine), so the cheaper kind wins: one vector a passage instead of one a token.
NOISE: Final = 0.01


def build(folder: Path) -> Identity:
    """Copy the backbone and measure both kinds. Raises ArtifactError below MIN_NDCG_AT_5."""
    backbone.copy_weights(folder)
    backbone.write_tokenizer(folder)
    with backbone.one_thread(), quiet_transformers():
        figures = measure(folder, read_data(SETS))
    winner = better(figures)
    if figures[winner] < MIN_NDCG_AT_5:
        raise ArtifactError(
            f"{NAME}: nDCG@5 {figures[winner]:.3f} as {winner}, expected at least "
            f"{MIN_NDCG_AT_5}: check the passages in {SETS}"
        )
    remove_noise(folder)
    return Identity(
        schema="modelyard/manifest/v1",
        name=NAME,
        version=VERSION,
        kind=Kind.RERANKER,
        license="Apache-2.0",
        source=backbone.ORIGIN,
        limits=backbone.LIMITS,
        runtime=backbone.RUNTIME,
        device=backbone.DEVICE,
        score_kind=winner,
        measured={f"ndcg_at_5.{kind}": round(value, 4) for kind, value in sorted(figures.items())},
    )


def better(figures: Mapping[ScoreKind, float]) -> ScoreKind:
    gain = figures["late-interaction"] - figures["bi-encoder"]
    return "late-interaction" if gain > NOISE else "bi-encoder"


def measure(folder: Path, sets: Sequence[Mapping[str, Any]]) -> dict[ScoreKind, float]:
    """Mean nDCG@5 of each kind over sets of {query, passages: [{text, relevance}]}."""
    import torch
    from transformers import BertModel

    model: Any = BertModel.from_pretrained(folder, dtype=torch.float32)
    model.eval()
    tokenizer = backbone.tokenizer_of(folder)
    found: dict[ScoreKind, list[float]] = {"bi-encoder": [], "late-interaction": []}
    for one in sets:
        grades = [passage["relevance"] for passage in one["passages"]]
        texts = [one["query"], *(passage["text"] for passage in one["passages"])]
        with torch.no_grad():
            scores = _scores(model, *backbone.tokenise(tokenizer, texts))
        for kind, values in scores.items():
            found[kind].append(ndcg(grades, values, 5))
    return {kind: fmean(values) for kind, values in found.items()}


def _scores(model: Any, ids: Tensor, mask: Tensor) -> dict[ScoreKind, list[float]]:
    """Relevance of the texts after the first to the first, by each kind."""
    from modelyard.scoring import bi_encoder_scores, late_interaction_scores, mean_pool

    hidden = model(ids, attention_mask=mask).last_hidden_state
    pooled = mean_pool(hidden, mask)
    late = late_interaction_scores(hidden[:1], mask[:1], hidden[1:], mask[1:])
    return {
        "bi-encoder": bi_encoder_scores(pooled[:1], pooled[1:]).tolist(),
        "late-interaction": late.tolist(),
    }


RECIPE: Final = Recipe(
    name=NAME, kind=Kind.RERANKER, source=backbone.SOURCE, build=build, data=(SETS,), revision=2
)
