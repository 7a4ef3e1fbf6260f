"""all-minilm-l6-v2: sentence embeddings, mean pooled and normalised, 384 dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from modelyard.artifacts.manifest import Identity
from modelyard.artifacts.starter import backbone
from modelyard.artifacts.starter.folder import copy_file, remove_noise
from modelyard.artifacts.starter.recipe import VERSION, Recipe
from modelyard.contract.operations import Kind

NAME: Final = "all-minilm-l6-v2"
# Weights, pooling and length of the vectors: a fine-tuned version gets another name.
EMBEDDING_SPACE: Final = NAME
# sentence-transformers and vLLM read the pooling from these; our shell takes it from the kind.
_POOLING_FILES: Final = ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json")


def build(folder: Path) -> Identity:
    """Copy the weights as they ship (fp32; the shell casts) with the tokenizer made plain."""
    backbone.copy_weights(folder)
    backbone.write_tokenizer(folder)
    for name in _POOLING_FILES:
        copy_file(backbone.SOURCE.file(name), folder / name)
    remove_noise(folder)
    return Identity(
        schema="modelyard/manifest/v1",
        name=NAME,
        version=VERSION,
        kind=Kind.EMBEDDER,
        license="Apache-2.0",
        source=backbone.ORIGIN,
        limits=backbone.LIMITS,
        runtime=backbone.RUNTIME,
        device=backbone.DEVICE,
        embedding_space=EMBEDDING_SPACE,
    )


RECIPE: Final = Recipe(
    name=NAME, kind=Kind.EMBEDDER, source=backbone.SOURCE, build=build, revision=2
)
