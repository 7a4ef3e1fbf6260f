"""Small GGUF files, as llama.cpp's converter writes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import pre_tokenizers

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}

_ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *_ALPHABET, "he"]
TYPES = [3] * 4 + [1] * (len(TOKENS) - 4)
MERGES = ("h e",)


def interleaved(rows: Any, heads: int) -> Any:
    """As llama.cpp's converter stores q and k of a Llama."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, 2, half, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def rounded(model: Any) -> Any:
    """Weights that bf16 holds exactly, so that a copy in bf16 is the same model."""
    import torch

    return model.to(torch.bfloat16).to(torch.float32)


def gguf_name(name: str) -> str:
    parts, end = name.rsplit(".", 1)
    if parts.startswith("model.layers."):
        _, _, layer, part = parts.split(".", 3)
        return f"blk.{layer}.{NAMES[part]}.{end}"
    return f"{NAMES[parts]}.{end}"


def write_gguf(
    path: Path,
    model: Any,
    architecture: str = "llama",
    pre: str = "smollm",
    template: str = "{{ messages }}",
    merges: Sequence[str] = MERGES,
) -> Path:
    from gguf import GGUFWriter

    config = model.config
    writer = GGUFWriter(path, architecture)
    writer.add_license("apache-2.0")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(TOKENS)
    writer.add_token_types(TYPES)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_chat_template(template)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, tensor in model.state_dict().items():
        values = tensor.numpy()
        for part, count in heads.items():
            if architecture == "llama" and f"{part}.weight" in name:
                values = interleaved(values, count)
        if name != "lm_head.weight" or not config.tie_word_embeddings:
            writer.add_tensor(gguf_name(name), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def a_model(architecture: str, **changes: Any) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {
        "vocab_size": len(TOKENS),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
    }
    kinds: Any = AutoConfig
    config = kinds.for_model(architecture, **sizes | changes)
    made: Any = AutoModelForCausalLM
    return rounded(made.from_config(config))
