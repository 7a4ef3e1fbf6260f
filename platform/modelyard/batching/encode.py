"""The encoder: a transformer of the BERT family on the best device here. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging as transformers_logging

from modelyard.batching.tokens import TextTokenizer, Tokens
from modelyard.contract.errors import ArtifactError, Internal


class Encoder:
    """Weights and tokenizer of one artifact. Its methods block: call them off the loop.

    folder: safetensors, config.json, tokenizer.json. limit: tokens an input may have. head: load
    the classification head too. dtype: bf16 is three times fp32's speed on CPU at cosine > 0.999.
    Raises ArtifactError for weights that do not fit the limit.
    """

    def __init__(
        self,
        folder: Path,
        limit: int,
        *,
        head: bool = False,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        family: Any = AutoModelForSequenceClassification if head else AutoModel
        options = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
        model = family.from_pretrained(folder, dtype=dtype, **options)
        self._model = model.to(self.device).eval()
        self.config = model.config
        positions = getattr(self.config, "max_position_embeddings", limit)
        if limit > positions:
            raise ArtifactError(
                f"{folder}: max_context_tokens is {limit}, but the model has {positions} "
                "positions: lower it in the manifest"
            )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.tokenizer = TextTokenizer(
            tokenizer.backend_tokenizer, limit, model.get_input_embeddings().num_embeddings
        )
        self._pad_id = int(tokenizer.pad_token_id or 0)

    @property
    def dimensions(self) -> int:
        return int(self.config.hidden_size)

    def hidden(self, batch: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Last hidden states [B, T, H] in the model's dtype, and the mask [B, T]."""
        with torch.inference_mode():
            inputs = self._pad(batch)
            return self._model(**inputs).last_hidden_state, inputs["attention_mask"]

    def logits(self, batch: Sequence[Tokens]) -> Tensor:
        """The head's outputs [B, labels] in fp32."""
        with torch.inference_mode():
            logits: Tensor = self._model(**self._pad(batch)).logits
            return logits.to(torch.float32)

    def _pad(self, batch: Sequence[Tokens]) -> dict[str, Tensor]:
        longest = max(len(one.ids) for one in batch)
        ids = [one.ids + [self._pad_id] * (longest - len(one.ids)) for one in batch]
        mask = [[1] * len(one.ids) + [0] * (longest - len(one.ids)) for one in batch]
        inputs = {"input_ids": ids, "attention_mask": mask}
        # Models without segments (DistilBERT, ModernBERT) refuse the argument.
        if getattr(self.config, "type_vocab_size", 0) > 1 and any(one.types for one in batch):
            inputs["token_type_ids"] = [
                (one.types or [0] * len(one.ids)) + [0] * (longest - len(one.ids)) for one in batch
            ]
        return {name: torch.tensor(rows).to(self.device) for name, rows in inputs.items()}


def not_finite() -> Internal:
    """For an input whose numbers overflowed: JSON has no NaN, and the rest of the batch is fine."""
    return Internal("the model gave no finite numbers for this text", reason="not_finite")


def rows_or_errors(rows: Tensor) -> list[Any]:
    """[B, N] as B lists of floats, with an error in place of each row that is not finite."""
    finite = torch.isfinite(rows).all(dim=-1).tolist()
    rows_and_finite = zip(rows.tolist(), finite, strict=True)
    return [row if good else not_finite() for row, good in rows_and_finite]
