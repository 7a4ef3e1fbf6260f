"""The token embeddings of a model: how many ids it has a row for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from modelyard.artifacts.weights import Tensor
from modelyard.contract.errors import ArtifactError

# Where each family keeps one row per token id, by the end of the tensor's name.
_EMBEDDINGS: Final = (
    "embed_tokens.weight",
    "word_embeddings.weight",
    "wte.weight",
    "tok_embeddings.weight",
    "embed_in.weight",
    "shared.weight",
)


def embedding_rows(folder: Path, tensors: Mapping[str, Tensor]) -> tuple[str, int]:
    """The name of the tensor with one row per token id, and its rows. Raises ArtifactError when no
    tensor has a name that we know."""
    for end in _EMBEDDINGS:
        # Shortest name first: a draft model or a second modality keeps its own deeper in.
        for name in sorted(tensors, key=lambda name: (len(name), name)):
            if (name == end or name.endswith(f".{end}")) and len(tensors[name].shape) == 2:
                return name, tensors[name].shape[0]
    raise ArtifactError(
        f"{folder}: expected token embeddings in the weights, as one of {', '.join(_EMBEDDINGS)}, "
        "got none: fetch the model again, or import it again"
    )
