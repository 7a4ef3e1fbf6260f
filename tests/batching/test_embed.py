"""Embeddings of the real embedder against transformers in fp32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from modelyard.batching.embed import EmbedInput, embed
from modelyard.batching.encode import Encoder

TEXTS = [
    "Where is my order?",
    "I was charged twice this month and would like my money back.",
    "reset",
    "The parcel arrived with a broken lid, and the second box is still on its way. " * 6,
]


@pytest.fixture(scope="module")
def folder(starter_models: Path) -> Path:
    return starter_models / "all-minilm-l6-v2" / "1.0.0"


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder(folder, 256)


@pytest.fixture(scope="module")
def reference(folder: Path) -> torch.Tensor:
    """sentence-transformers' recipe, written out: each text alone, fp32."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    rows = []
    for text in TEXTS:
        inputs = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**inputs).last_hidden_state[0]
        rows.append(hidden.mean(dim=0) / hidden.mean(dim=0).norm())
    return torch.stack(rows)


def vectors(encoder: Encoder, texts: list[str], dimensions: int | None = None) -> torch.Tensor:
    tokens = encoder.tokenizer.texts(texts, "input")
    return torch.tensor(embed(encoder, [EmbedInput(one, dimensions) for one in tokens]))


def test_bf16_agrees_with_the_fp32_reference(encoder: Encoder, reference: torch.Tensor) -> None:
    ours = vectors(encoder, TEXTS)
    assert ours.shape == (len(TEXTS), 384)
    torch.testing.assert_close(ours.norm(dim=-1), torch.ones(len(TEXTS)))
    assert ((ours * reference).sum(dim=-1) > 0.999).all()


def test_fp32_equals_the_reference(folder: Path, reference: torch.Tensor) -> None:
    ours = vectors(Encoder(folder, 256, dtype=torch.float32), TEXTS)
    torch.testing.assert_close(ours, reference, atol=1e-5, rtol=1e-4)


def test_the_company_in_a_batch_hardly_changes_a_vector(encoder: Encoder) -> None:
    together = vectors(encoder, TEXTS)
    alone = torch.cat([vectors(encoder, [text]) for text in TEXTS])
    assert (together - alone).abs().max() < 1e-2


def test_dimensions_keep_the_first_values_at_unit_length(encoder: Encoder) -> None:
    whole, kept = vectors(encoder, TEXTS), vectors(encoder, TEXTS, 64)
    expected = whole[:, :64] / whole[:, :64].norm(dim=-1, keepdim=True)
    torch.testing.assert_close(kept, expected)
