"""A BERT of a few kilobytes with random weights: quick, and every path of the real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

TEXT = "refund order late parcel card broken login reset plan cancel invoice where is my the"
WORDS = TEXT.split()
MakeModel = Callable[[int], Path]


@pytest.fixture(scope="session")
def make_tiny_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """From a number of labels to a folder with weights and tokenizer."""

    def make(labels: int) -> Path:
        folder = tmp_path_factory.mktemp(f"tiny-{labels}")
        _tokenizer(folder)
        with torch.random.fork_rng():
            torch.manual_seed(labels)
            config = BertConfig(
                vocab_size=5 + len(WORDS),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
                max_position_embeddings=64,
                initializer_range=0.5,  # large, so that texts differ and a mistake shows
            )
            config.num_labels = labels
            model: Any = BertForSequenceClassification(config)  # type: ignore[no-untyped-call]
            model.save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_model(make_tiny_model: MakeModel) -> Path:
    return make_tiny_model(3)


def _tokenizer(folder: Path) -> None:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    ids = {word: index for index, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(8)  # as many published tokenizers do: it must have no effect
    tokenizer.enable_padding(length=8)
    BertTokenizer(tokenizer_object=tokenizer).save_pretrained(folder)
