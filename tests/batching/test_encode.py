"""The encoder, on weights that a test can check."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from modelyard.batching.encode import Encoder, rows_or_errors
from modelyard.contract.errors import ArtifactError, Internal


def test_weights_are_bf16_unless_asked_otherwise(tiny_model: Path) -> None:
    hidden, _ = (encoder := Encoder(tiny_model, 64)).hidden(encoder.tokenizer.texts(["refund"], ""))
    assert hidden.dtype is torch.bfloat16


def test_padding_does_not_change_an_inputs_hidden_states(tiny_model: Path) -> None:
    encoder = Encoder(tiny_model, 64, dtype=torch.float32)
    short, long = encoder.tokenizer.texts(["refund my order", "late parcel " * 20], "")
    alone, _ = encoder.hidden([short])
    together, mask = encoder.hidden([short, long])
    assert mask[0].tolist() == [1] * len(short.ids) + [0] * (len(long.ids) - len(short.ids))
    torch.testing.assert_close(together[0, : len(short.ids)], alone[0], atol=1e-5, rtol=1e-4)


def test_a_limit_beyond_the_models_positions_is_refused_at_load(tiny_model: Path) -> None:
    with pytest.raises(ArtifactError, match="max_context_tokens is 65, but the model has 64"):
        Encoder(tiny_model, 65)


def test_a_row_that_is_not_finite_is_an_error_and_the_others_are_not() -> None:
    good, bad = rows_or_errors(torch.tensor([[1.0, 2.0], [float("nan"), 0.0]]))
    assert good == [1.0, 2.0]
    assert isinstance(bad, Internal)
