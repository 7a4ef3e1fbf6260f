"""A Llama model out of a GGUF file: the parts of a standard Hugging Face folder.

Read here with the `gguf` package rather than by transformers' loader: that one parses the file
three times (18 s instead of 5 s of `make up` on two cores), wants accelerate, draws bars that
cannot be turned off, and does not split digits. A test holds both to the same weights.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from modelyard.artifacts.gguf_fields import count, field, find, number, odd
from modelyard.artifacts.gguf_tokenizer import token_ids
from modelyard.contract.errors import ArtifactError

if TYPE_CHECKING:
    import numpy
    from gguf import GGUFReader, ReaderTensor
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
_HEAD_SIZE: Final = "llama.attention.key_length"
_NUMBER: Final = re.compile("0|[1-9][0-9]*")


def hf_name(name: str) -> str:
    """`blk.3.attn_q.weight` to `model.layers.3.self_attn.q_proj.weight`.

    Raises ArtifactError for a tensor that a plain Llama does not have.
    """
    parts = name.split(".")
    if parts[0] == "blk" and len(parts) == 4 and parts[2] in _LAYER and _NUMBER.fullmatch(parts[1]):
        return f"model.layers.{parts[1]}.{_LAYER[parts[2]]}.{parts[3]}"
    if parts[0] in _TOP and len(parts) == 2:
        return f"{_TOP[parts[0]]}.{parts[1]}"
    raise ArtifactError(
        f"the GGUF file has a tensor {name}, which a plain Llama has not (experts, or a scaled "
        "rotary embedding): import the model's original folder"
    )


def weights(reader: GGUFReader) -> dict[str, Tensor]:
    """Every tensor by its Hugging Face name, dequantised, in bf16.

    Raises ArtifactError for a tensor that a plain Llama has not, for one that is missing, and for
    one that cannot be dequantised.
    """
    import torch

    heads = {
        "attn_q": count(reader, "llama.attention.head_count"),
        "attn_k": count(reader, "llama.attention.head_count_kv"),
    }
    _require_complete(
        [hf_name(tensor.name) for tensor in reader.tensors], count(reader, "llama.block_count")
    )
    found = {}
    for tensor in reader.tensors:
        values = _dequantised(tensor)
        for part, of_part in heads.items():
            if f".{part}." in tensor.name:
                values = unpermuted(values, of_part)
        found[hf_name(tensor.name)] = torch.from_numpy(values.copy()).to(torch.bfloat16)
    return found


def _require_complete(names: Collection[str], layers: int) -> None:
    """A Llama's tensors, all of them and no others: an engine may fill a gap with anything."""
    # A damaged count of layers is not counted up to.
    if layers > len(names):
        raise odd("llama.block_count", f"at most its {len(names)} tensors", layers)
    parts = {f"model.layers.{layer}.{part}" for layer in range(layers) for part in _LAYER.values()}
    needed = {f"{part}.weight" for part in parts | {_TOP["token_embd"], _TOP["output_norm"]}}
    wrong = sorted((needed ^ set(names)) - {f"{_TOP['output']}.weight"})
    if wrong:
        what = "no" if wrong[0] in needed else "more than a plain Llama has:"
        raise ArtifactError(
            f"the GGUF file of {layers} layers has {what} {wrong[0]}: import the model's original "
            "folder"
        )


def _dequantised(tensor: ReaderTensor) -> numpy.ndarray[Any, Any]:
    from gguf import dequantize

    try:
        return dequantize(tensor.data, tensor.tensor_type)
    # The library raises whatever numpy does for blocks that do not fit, NotImplementedError too.
    except Exception as error:
        raise odd(tensor.name, "blocks that can be dequantised", error) from error


def unpermuted(rows: numpy.ndarray[Any, Any], heads: int) -> numpy.ndarray[Any, Any]:
    """GGUF interleaves the two halves of each head for its rotary embedding; undo that."""
    if rows.ndim != 2 or rows.shape[0] % (2 * heads):
        raise odd("attention", f"rows of {heads} heads, in halves", rows.shape)
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
    hidden = count(reader, "llama.embedding_length")
    heads = count(reader, "llama.attention.head_count")
    has_head_size = find(reader, _HEAD_SIZE) is not None
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "head_dim": count(reader, _HEAD_SIZE) if has_head_size else hidden // heads,
        "intermediate_size": count(reader, "llama.feed_forward_length"),
        "max_position_embeddings": count(reader, "llama.context_length"),
        "num_attention_heads": heads,
        "num_hidden_layers": count(reader, "llama.block_count"),
        "num_key_value_heads": count(reader, "llama.attention.head_count_kv"),
        # GGUF keeps fp32; the model's authors wrote 1e-05.
        "rms_norm_eps": float(f"{number(reader, 'llama.attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_parameters": {
            "rope_theta": number(reader, "llama.rope.freq_base", 10000.0),
            "rope_type": "default",
        },
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "vocab_size": len(field(reader, "tokenizer.ggml.tokens")),
        **token_ids(reader),
    }
