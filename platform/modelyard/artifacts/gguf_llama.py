"""A Llama model out of a GGUF file: the parts of a standard Hugging Face folder.

Read here with the `gguf` package rather than by transformers' loader: that one parses the file
three times (18 s instead of 5 s of `make up` on two cores), wants accelerate, draws bars that
cannot be turned off, and does not split digits. A test holds both to the same weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from modelyard.contract.errors import ArtifactError

if TYPE_CHECKING:
    import numpy
    from gguf import GGUFReader
    from tokenizers import Tokenizer
    from torch import Tensor

_TOP: Final = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER: Final = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL_TOKEN: Final = 3


def field(reader: GGUFReader, name: str) -> Any:
    """Raises ArtifactError for a name that the file does not have."""
    found = find(reader, name)
    if found is None:
        raise ArtifactError(f"the GGUF file has no {name}: convert the model again")
    return found


def find(reader: GGUFReader, name: str) -> Any:
    """None for a name that the file does not have."""
    held = reader.fields.get(name)
    return None if held is None else held.contents()


def hf_name(name: str) -> str:
    """`blk.3.attn_q.weight` to `model.layers.3.self_attn.q_proj.weight`.

    Raises ArtifactError for a tensor that a plain Llama does not have.
    """
    parts = name.split(".")
    if parts[0] == "blk" and len(parts) == 4 and parts[2] in _LAYER:
        return f"model.layers.{parts[1]}.{_LAYER[parts[2]]}.{parts[3]}"
    if parts[0] in _TOP and len(parts) == 2:
        return f"{_TOP[parts[0]]}.{parts[1]}"
    raise ArtifactError(
        f"the GGUF file has a tensor {name}, which a plain Llama has not (experts, or a scaled "
        "rotary embedding): import the model's original folder"
    )


def weights(reader: GGUFReader) -> dict[str, Tensor]:
    """Every tensor by its Hugging Face name, dequantised, in bf16."""
    import torch
    from gguf import dequantize

    heads = {
        "attn_q": field(reader, "llama.attention.head_count"),
        "attn_k": field(reader, "llama.attention.head_count_kv"),
    }
    found = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        for part, count in heads.items():
            if f".{part}." in tensor.name:
                values = unpermuted(values, count)
        found[hf_name(tensor.name)] = torch.from_numpy(values.copy()).to(torch.bfloat16)
    return found


def unpermuted(rows: numpy.ndarray[Any, Any], heads: int) -> numpy.ndarray[Any, Any]:
    """GGUF interleaves the two halves of each head for its rotary embedding; undo that."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, half, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def config(reader: GGUFReader) -> dict[str, Any]:
    """config.json. Without output weights of its own the embedding's are used.

    Raises ArtifactError for a scaled rotary embedding, whose parameters GGUF folds into a tensor.
    """
    scaling = find(reader, "llama.rope.scaling.type")
    if scaling not in (None, "none"):
        raise ArtifactError(
            f"the GGUF file scales its rotary embedding ({scaling}), which cannot be read back "
            "exactly: import the model's original folder"
        )
    hidden = field(reader, "llama.embedding_length")
    heads = field(reader, "llama.attention.head_count")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "head_dim": find(reader, "llama.attention.key_length") or hidden // heads,
        "intermediate_size": field(reader, "llama.feed_forward_length"),
        "max_position_embeddings": field(reader, "llama.context_length"),
        "num_attention_heads": heads,
        "num_hidden_layers": field(reader, "llama.block_count"),
        "num_key_value_heads": field(reader, "llama.attention.head_count_kv"),
        # GGUF keeps fp32; the model's authors wrote 1e-05.
        "rms_norm_eps": float(f"{field(reader, 'llama.attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_parameters": {
            "rope_theta": find(reader, "llama.rope.freq_base") or 10000.0,
            "rope_type": "default",
        },
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "vocab_size": len(reader.fields["tokenizer.ggml.tokens"].data),
        **token_ids(reader),
    }


def token_ids(reader: GGUFReader) -> dict[str, int]:
    names = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    found = {name: find(reader, f"tokenizer.ggml.{use}_token_id") for name, use in names.items()}
    return {name: index for name, index in found.items() if index is not None}


def tokenizer(reader: GGUFReader) -> Tokenizer:
    """Byte-level BPE that splits digits off first, as `tokenizer.ggml.pre` = smollm says."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens: list[str] = field(reader, "tokenizer.ggml.tokens")
    types: list[int] = field(reader, "tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in field(reader, "tokenizer.ggml.merges")]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
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


def tokenizer_config(reader: GGUFReader) -> dict[str, Any]:
    tokens = field(reader, "tokenizer.ggml.tokens")
    names = {name.removesuffix("_id"): tokens[index] for name, index in token_ids(reader).items()}
    architecture = field(reader, "general.architecture")
    unknown = find(reader, "tokenizer.ggml.unknown_token_id")
    return {
        "clean_up_tokenization_spaces": False,
        "model_max_length": field(reader, f"{architecture}.context_length"),
        "tokenizer_class": "PreTrainedTokenizerFast",
        **names,
        **({} if unknown is None else {"unk_token": tokens[unknown]}),
    }
