"""A folder's config.json: the sizes of the model, under the names that architectures give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from modelyard.artifacts.json_file import read_object
from modelyard.contract.errors import ArtifactError

CONFIG_NAME: Final = "config.json"
_KV_HEADS: Final = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num")
# The part of a model of several modalities that reads and writes text.
_TEXT_PARTS: Final = ("text_config", "llm_config", "language_config")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """path: the file. record: all of it. text: the part about the language model, or all of it.

    Every property raises ArtifactError when the config does not say, or says no positive integer.
    """

    path: Path
    record: Mapping[str, Any]
    text: Mapping[str, Any]

    @property
    def model_type(self) -> str:
        return str(self.text.get("model_type", ""))

    @property
    def quantised(self) -> bool:
        return self.record.get("quantization_config") is not None

    @property
    def vocab_size(self) -> int:
        return self.integer("vocab_size")

    @property
    def hidden_size(self) -> int:
        return self.integer("hidden_size", "n_embd", "d_model", "dim")

    @property
    def layers(self) -> int:
        return self.integer("num_hidden_layers", "n_layer", "n_layers", "num_layers")

    @property
    def attention_heads(self) -> int:
        return self.integer("num_attention_heads", "n_head", "n_heads")

    @property
    def kv_heads(self) -> int:
        found = self.find(*_KV_HEADS)
        return self.attention_heads if found is None else found

    @property
    def head_size(self) -> int:
        found = self.find("head_dim", "hidden_size_per_head")
        return self.hidden_size // self.attention_heads if found is None else found

    @property
    def intermediate_size(self) -> int:
        found = self.find("intermediate_size", "n_inner", "ffn_dim", "hidden_dim", "d_ff")
        return 4 * self.hidden_size if found is None else found

    def integer(self, *names: str) -> int:
        """The first of `names` that the config gives."""
        found = self.find(*names)
        if found is None:
            raise ArtifactError(
                f"{self.path}: {names[0]}: expected a positive integer, got nothing: "
                "write what the model has"
            )
        return found

    def find(self, *names: str) -> int | None:
        for name in names:
            value = self.text.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
                raise ArtifactError(
                    f"{self.path}: {name}: expected a positive integer, got {value!r}: "
                    "write what the model has"
                )
            return value
        return None


def read_model_config(folder: Path) -> ModelConfig:
    """Raises ArtifactError when config.json is missing or no JSON object."""
    path = folder / CONFIG_NAME
    record = read_object(path)
    parts = (record.get(name) for name in _TEXT_PARTS)
    text = next((part for part in parts if isinstance(part, dict)), record)
    return ModelConfig(path, record, text)
