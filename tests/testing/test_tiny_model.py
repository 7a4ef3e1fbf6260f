"""The tiny model is one that the stock libraries load, whole, and that answers."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from modelyard.artifacts.manifest import Limits
from modelyard.artifacts.starter.quiet import quiet_transformers
from modelyard.contract.operations import Kind
from modelyard.testing.tiny_model import write_tiny_model
from modelyard.testing.tiny_weights import ROWS

FAMILIES: dict[Kind, Any] = {
    Kind.GENERATOR: AutoModelForCausalLM,
    Kind.CLASSIFIER: AutoModelForSequenceClassification,
}
SHAPES = {
    Kind.GENERATOR: (1, 5, ROWS),
    Kind.CLASSIFIER: (1, 2),
    Kind.EMBEDDER: (1, 7, 64),
    Kind.RERANKER: (1, 7, 64),
}


@pytest.mark.parametrize("kind", Kind)
def test_it_loads_whole_and_computes_numbers(kind: Kind, tmp_path: Path) -> None:
    write_tiny_model(tmp_path, kind=kind)
    with quiet_transformers():
        family = FAMILIES.get(kind, AutoModel)
        model, report = family.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path)
    inputs = tokenizer("hello", return_tensors="pt")
    with torch.no_grad():
        output = model(input_ids=inputs.input_ids, attention_mask=inputs.attention_mask)[0]
    assert output.shape == SHAPES[kind]
    assert output.isfinite().all()
    assert output.std() > 0


def test_its_context_is_what_its_limits_say(tmp_path: Path) -> None:
    limits = Limits(max_context_tokens=4096, max_output_tokens=1024, drain_s=60)
    manifest = write_tiny_model(tmp_path / "a/b", kind=Kind.GENERATOR, limits=limits)
    assert manifest.limits.max_context_tokens == 4096


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    digests = {write_tiny_model(tmp_path / name).digest() for name in ("a", "b")}
    assert len(digests) == 1
