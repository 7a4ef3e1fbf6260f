"""Probabilities against BertForSequenceClassification, each text alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, BertForSequenceClassification

from modelyard.batching.classify import classify
from modelyard.batching.encode import Encoder

TEXTS = ["refund my order", "where is the late parcel " * 4, "login broken"]


def reference_logits(folder: Path) -> torch.Tensor:
    model: Any = BertForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
    backend = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    with torch.inference_mode():
        return torch.cat(
            [model.eval()(torch.tensor([backend.encode(text).ids])).logits for text in TEXTS]
        )


def probabilities(encoder: Encoder) -> torch.Tensor:
    return torch.tensor(classify(encoder, encoder.tokenizer.texts(TEXTS, "input")))


def test_several_labels_share_one_softmax(tiny_model: Path) -> None:
    encoder = Encoder(tiny_model, 64, head=True, dtype=torch.float32)
    expected = reference_logits(tiny_model).softmax(dim=-1)
    torch.testing.assert_close(probabilities(encoder), expected, atol=1e-5, rtol=1e-4)


def test_one_label_alone_is_a_sigmoid(make_tiny_model: Any) -> None:
    folder = make_tiny_model(1)
    encoder = Encoder(folder, 64, head=True, dtype=torch.float32)
    expected = reference_logits(folder).sigmoid()
    torch.testing.assert_close(probabilities(encoder), expected, atol=1e-5, rtol=1e-4)


def test_labels_that_do_not_exclude_each_other_have_a_sigmoid_each(tiny_model: Path) -> None:
    encoder = Encoder(tiny_model, 64, head=True, dtype=torch.float32)
    encoder.config.problem_type = "multi_label_classification"
    expected = reference_logits(tiny_model).sigmoid()
    torch.testing.assert_close(probabilities(encoder), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["support-intent"])
def test_the_real_classifier_in_bf16_stays_near_fp32(starter_models: Path, name: str) -> None:
    folder = starter_models / name / "1.0.0"
    expected = reference_logits(folder).softmax(dim=-1)
    ours = probabilities(Encoder(folder, 256, head=True))
    assert (ours - expected).abs().max() < 0.05
    assert ours.argmax(dim=-1).tolist() == expected.argmax(dim=-1).tolist()
