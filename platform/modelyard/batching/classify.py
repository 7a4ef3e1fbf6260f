"""Class probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from modelyard.batching.encode import Encoder, rows_or_errors
from modelyard.batching.tokens import Tokens

Probabilities = list[float]


def classify(encoder: Encoder, batch: Sequence[Tokens]) -> list[Probabilities | Exception]:
    """A probability for each label, for each input, or the error of that input.

    Softmax; sigmoid where labels do not exclude each other (one label alone, or a model that says
    so), which is transformers' and vLLM's rule.
    """
    logits = encoder.logits(batch)
    independent = encoder.config.problem_type == "multi_label_classification"
    with torch.inference_mode():
        if independent or logits.shape[-1] == 1:
            return rows_or_errors(logits.sigmoid())
        return rows_or_errors(logits.softmax(dim=-1))
