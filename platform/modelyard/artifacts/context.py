"""How long a context a model was made for, counted as vLLM counts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from modelyard.artifacts.model_config import ModelConfig
from modelyard.contract.errors import ArtifactError

_LENGTH_NAMES: Final = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
# vllm/config/model.py (0.32) takes these lengths as scaled already; "mrope" is its old name for no
# scaling at all. Any other type multiplies the length by its factor.
_SCALED_ALREADY: Final = frozenset(
    {
        "su",
        "longrope",
        "llama3",
        "yarn",
        "deepseek_yarn",
        "deepseek_llama_scaling",
        "mrope",
        "default",
    }
)
# The position table's first rows, up to and with the padding token's, belong to no position.
_ROWS_BEFORE_THE_FIRST: Final = {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet"}
# transformers' MPNet takes it for this one, whatever pad_token_id says.
_PADDING: Final = 1


def longest_context(config: ModelConfig) -> int | None:
    """Tokens; None when the config gives no length. Raises ArtifactError for a length that is no
    positive integer and for a factor that is no number."""
    own = config.find("model_max_length")  # Cohere's; vLLM lets it win
    lengths = [length for name in _LENGTH_NAMES if (length := config.find(name)) is not None]
    if own is None and not lengths:
        return None
    length = own if own is not None else min(lengths)
    if config.model_type in _ROWS_BEFORE_THE_FIRST:
        return length - _padding(config) - 1
    # Gemma 3 gives its length scaled already.
    return length if "gemma3" in config.model_type else int(length * _factor(config))


def _padding(config: ModelConfig) -> int:
    given = config.text.get("pad_token_id")
    return given if isinstance(given, int) and config.model_type != "mpnet" else _PADDING


def _factor(config: ModelConfig) -> float:
    factor = 1.0
    for scaling in _scalings(config.text):
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        given = scaling.get("factor")
        if kind in _SCALED_ALREADY or given is None:
            continue
        if isinstance(given, bool) or not isinstance(given, int | float) or not 1 <= given < 1e6:
            raise ArtifactError(
                f"{config.path}: rope_scaling.factor: expected a number of at least 1, got "
                f"{given!r}: write what the model was trained with"
            )
        factor = float(given)
    return factor


def _scalings(text: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """`rope_parameters` (transformers 5), before it `rope_scaling`: one, or one per layer type."""
    given = text.get("rope_parameters") or text.get("rope_scaling")
    if not isinstance(given, dict):
        return
    nested = [part for part in given.values() if isinstance(part, dict)]
    yield from nested or [given]
