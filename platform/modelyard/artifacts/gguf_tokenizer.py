"""The byte-level BPE tokenizer of a GGUF file, as a Hugging Face folder has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from modelyard.artifacts.gguf_fields import count, field, odd, text, texts, token_index

if TYPE_CHECKING:
    from gguf import GGUFReader
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

_CONTROL_TOKEN: Final = 3


def token_ids(reader: GGUFReader) -> dict[str, int]:
    names = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    tokens = len(texts(reader, "tokenizer.ggml.tokens"))
    found = {
        name: token_index(reader, f"tokenizer.ggml.{use}_token_id", tokens)
        for name, use in names.items()
    }
    return {name: index for name, index in found.items() if index is not None}


def tokenizer(reader: GGUFReader) -> Tokenizer:
    """Byte-level BPE that splits digits off first, as `tokenizer.ggml.pre` = smollm says."""
    from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers

    tokens = texts(reader, "tokenizer.ggml.tokens")
    types = field(reader, "tokenizer.ggml.token_type")
    if not isinstance(types, list) or len(types) != len(tokens):
        raise odd("tokenizer.ggml.token_type", f"one type for each of {len(tokens)} tokens", types)
    made = Tokenizer(_bpe(tokens, texts(reader, "tokenizer.ggml.merges")))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, types, strict=True)
            if kind == _CONTROL_TOKEN
        ]
    )
    return made


def _bpe(tokens: list[str], merges: list[str]) -> BPE:
    from tokenizers.models import BPE

    vocabulary = {token: index for index, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        twice = next(token for index, token in enumerate(tokens) if vocabulary[token] != index)
        raise odd("tokenizer.ggml.tokens", "each token once", f"{twice} twice")
    pairs = [_pair(merge) for merge in merges]
    try:
        return BPE(vocab=vocabulary, merges=pairs)
    # The library raises bare Exception for a merge of what is no token.
    except Exception as error:
        raise odd("tokenizer.ggml.merges", "pairs of tokens", error) from error


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    if not left or not right or " " in right:
        raise odd("tokenizer.ggml.merges", "pairs of tokens", merge)
    return left, right


def tokenizer_config(reader: GGUFReader) -> dict[str, Any]:
    tokens = texts(reader, "tokenizer.ggml.tokens")
    names = {name.removesuffix("_id"): tokens[index] for name, index in token_ids(reader).items()}
    architecture = text(reader, "general.architecture")
    unknown = token_index(reader, "tokenizer.ggml.unknown_token_id", len(tokens))
    return {
        "clean_up_tokenization_spaces": False,
        "model_max_length": count(reader, f"{architecture}.context_length"),
        "tokenizer_class": "PreTrainedTokenizerFast",
        **names,
        **({} if unknown is None else {"unk_token": tokens[unknown]}),
    }
