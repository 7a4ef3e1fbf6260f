"""The three kinds of reranker against plain loops, through the batcher."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from modelyard.artifacts.manifest import ScoreKind
from modelyard.batching import rank
from modelyard.batching.batcher import Batcher
from modelyard.batching.encode import Encoder
from modelyard.batching.rank import RANKERS, Ranker, RankInput, Texts
from modelyard.config.tunables import BatchTunables
from modelyard.contract.errors import Internal

QUERY = "where is my parcel"
DOCUMENTS = ["the parcel is late", "cancel my plan", "refund " * 30, "where is my parcel"]
FIELDS = ("query", "documents")


def tokenizer_of(folder: Path) -> Any:
    backend = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return backend


def hidden_of(folder: Path, text: str) -> Tensor:
    model: Any = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        hidden: Tensor = model(torch.tensor([tokenizer_of(folder).encode(text).ids]))[0][0]
    return hidden


def cross_encoder(folder: Path, query: str, document: str) -> float:
    family = AutoModelForSequenceClassification
    model: Any = family.from_pretrained(folder, dtype=torch.float32).eval()
    pair = tokenizer_of(folder).encode(query, document)
    with torch.inference_mode():
        logit = model(torch.tensor([pair.ids]), token_type_ids=torch.tensor([pair.type_ids]))[0]
    return 1 / (1 + math.exp(-float(logit)))


def bi_encoder(folder: Path, query: str, document: str) -> float:
    left, right = (hidden_of(folder, text).mean(dim=0) for text in (query, document))
    return (1 + float(left @ right / (left.norm() * right.norm()))) / 2


def late_interaction(folder: Path, query: str, document: str) -> float:
    best = [
        max(float(q @ d / (q.norm() * d.norm())) for d in hidden_of(folder, document))
        for q in hidden_of(folder, query)
    ]
    return (1 + sum(best) / len(best)) / 2


REFERENCES: dict[ScoreKind, Callable[[Path, str, str], float]] = {
    "cross-encoder": cross_encoder,
    "bi-encoder": bi_encoder,
    "late-interaction": late_interaction,
}


def ranker_of(folder: Path, kind: ScoreKind, **options: Any) -> Ranker:
    ranker = RANKERS[kind]
    return ranker(Encoder(folder, 64, head=ranker.HEAD, **options))


async def scores(ranker: Ranker, texts: Texts) -> list[float]:
    batcher: Batcher[RankInput, Tensor] = Batcher(ranker.compute, BatchTunables(max_batch_size=3))
    return await ranker.scores(batcher, ranker.tokenize(texts))


@pytest.fixture(scope="module")
def one_label(make_tiny_model: Any) -> Path:
    folder: Path = make_tiny_model(1)
    return folder


@pytest.mark.parametrize("kind", list(RANKERS))
async def test_each_kind_equals_its_reference(one_label: Path, kind: ScoreKind) -> None:
    ranker = ranker_of(one_label, kind, dtype=torch.float32)
    ours = await scores(ranker, Texts([QUERY], DOCUMENTS, FIELDS))
    expected = [REFERENCES[kind](one_label, QUERY, document) for document in DOCUMENTS]
    assert ours == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", list(RANKERS))
async def test_many_against_many_pairs_them_up(one_label: Path, kind: ScoreKind) -> None:
    ranker = ranker_of(one_label, kind, dtype=torch.float32)
    left = [QUERY, "cancel", "refund", "login broken"]
    together = await scores(ranker, Texts(left, DOCUMENTS, FIELDS))
    apart = [
        (await scores(ranker, Texts([one], [other], FIELDS)))[0]
        for one, other in zip(left, DOCUMENTS, strict=True)
    ]
    assert together == pytest.approx(apart, abs=1e-5)


async def test_two_queries_in_one_late_interaction_batch_do_not_mix(one_label: Path) -> None:
    ranker = ranker_of(one_label, "late-interaction", dtype=torch.float32)
    batcher: Batcher[RankInput, Tensor] = Batcher(ranker.compute, BatchTunables())
    queries = [QUERY, "cancel my plan"]
    jobs = [ranker.tokenize(Texts([query], DOCUMENTS, FIELDS)) for query in queries]
    together = await asyncio.gather(*(ranker.scores(batcher, job) for job in jobs))
    for query, ours in zip(queries, together, strict=True):
        expected = [late_interaction(one_label, query, document) for document in DOCUMENTS]
        assert ours == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", list(RANKERS))
async def test_bf16_stays_within_bounds(one_label: Path, kind: ScoreKind) -> None:
    ours = await scores(ranker_of(one_label, kind), Texts([QUERY], DOCUMENTS, FIELDS))
    assert all(0 <= score <= 1 for score in ours)
    expected = [REFERENCES[kind](one_label, QUERY, document) for document in DOCUMENTS]
    assert ours == pytest.approx(expected, abs=0.05)


async def test_a_score_that_is_not_finite_fails_with_its_place(one_label: Path) -> None:
    ranker = ranker_of(one_label, "bi-encoder")
    real = ranker.compute

    def overflowing(batch: Sequence[RankInput]) -> list[Tensor | Exception]:
        results = real(batch)
        results[-1] = Internal("the model gave no finite numbers for this text")
        return results

    batcher: Batcher[RankInput, Tensor] = Batcher(overflowing, BatchTunables())
    with pytest.raises(Internal, match="text 2: the model gave no finite"):
        await ranker.scores(batcher, ranker.tokenize(Texts(["refund"], ["my", "plan"], FIELDS)))


async def test_many_queries_are_not_all_kept_at_once(
    one_label: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank, "QUERIES_AT_ONCE", 2)
    ranker = ranker_of(one_label, "late-interaction", dtype=torch.float32)
    real, waiting, most = ranker.compute, 0, 0

    def counting(batch: Sequence[RankInput]) -> list[Tensor | Exception]:
        nonlocal waiting, most
        waiting += sum(1 if one.query is None else -1 for one in batch)
        most = max(most, waiting)
        return real(batch)

    batcher: Batcher[RankInput, Tensor] = Batcher(counting, BatchTunables())
    texts = Texts(DOCUMENTS, DOCUMENTS, FIELDS)
    ours = await ranker.scores(batcher, ranker.tokenize(texts))
    assert ours == pytest.approx([1.0] * len(DOCUMENTS), abs=1e-5)
    assert most == 2


async def test_a_failure_in_a_later_part_names_the_text_of_the_request(
    one_label: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank, "QUERIES_AT_ONCE", 2)
    ranker = ranker_of(one_label, "late-interaction")
    real, calls = ranker.compute, 0

    def failing(batch: Sequence[RankInput]) -> list[Tensor | Exception]:
        nonlocal calls
        calls += 1
        return real(batch) if calls < 3 else [Internal("no") for _ in batch]

    batcher: Batcher[RankInput, Tensor] = Batcher(failing, BatchTunables())
    with pytest.raises(Internal, match="text 2: no"):
        await ranker.scores(batcher, ranker.tokenize(Texts(DOCUMENTS, DOCUMENTS, FIELDS)))
