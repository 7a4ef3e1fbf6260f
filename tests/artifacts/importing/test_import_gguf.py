from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, pre_tokenizers

from modelyard.artifacts.importing.importer import Imported
from modelyard.artifacts.starter import generator
from modelyard.contract.errors import ArtifactError

Import = Callable[..., Imported]

_NAMES = {
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
MERGES = ["h e"]


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
        return f"blk.{layer}.{_NAMES[part]}.{end}"
    return f"{_NAMES[parts]}.{end}"


def write_gguf(path: Path, model: Any, architecture: str = "llama", pre: str = "smollm") -> Path:
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
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_chat_template("{{ messages }}")
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


def same_weights(folder: Path, model: Any) -> bool:
    import torch
    from transformers import AutoModelForCausalLM

    family: Any = AutoModelForCausalLM
    loaded = family.from_pretrained(folder, dtype=torch.float32).state_dict()
    expected = model.state_dict()
    return loaded.keys() == expected.keys() and all(
        torch.equal(loaded[name], expected[name]) for name in expected
    )


@pytest.mark.parametrize("tied", [True, False])
def test_a_llama_comes_back_as_it_was(bring: Import, tmp_path: Path, tied: bool) -> None:
    model = a_model("llama", tie_word_embeddings=tied, rope_theta=5000.0)
    made = bring(write_gguf(tmp_path / "m.gguf", model))
    assert same_weights(made.folder, model)
    manifest = made.manifest
    assert (manifest.license, manifest.source) == ("apache-2.0", "m.gguf")
    assert (manifest.weights.dtype, manifest.limits.max_context_tokens) == ("bfloat16", 64)
    assert manifest.tokenizer.chat_template_sha256 is not None
    tokenizer = Tokenizer.from_file(str(made.folder / "tokenizer.json"))
    assert tokenizer.encode("he 12").tokens == ["he", "\u0120", "1", "2"]


def test_another_tokenizer_is_asked_for_and_compared(
    bring: Import, tmp_path: Path, llama: Path
) -> None:
    path = write_gguf(tmp_path / "m.gguf", a_model("llama"), pre="llama-bpe")
    with pytest.raises(ArtifactError, match=r"\(gpt2, split as llama-bpe\).* say --tokenizer"):
        bring(path)
    made = bring(path, tokenizer=llama)
    assert (made.folder / "tokenizer.json").read_bytes() == (llama / "tokenizer.json").read_bytes()
    text = (llama / "tokenizer.json").read_text()
    (llama / "tokenizer.json").write_text(text.replace("[CLS]", "[BOS]"))
    with pytest.raises(ArtifactError, match=r"token 2 is '\[BOS\]', and m.gguf has '\[CLS\]'"):
        bring(path, tokenizer=llama, name="other")
    with pytest.raises(ArtifactError, match=r"needs a folder with a tokenizer.json"):
        bring(path, tokenizer=tmp_path, name="other")


def test_other_architectures_are_read_by_transformers(
    bring: Import, tmp_path: Path, llama: Path
) -> None:
    model = a_model("qwen2", tie_word_embeddings=True)
    path = write_gguf(tmp_path / "q.gguf", model, "qwen2", pre="qwen2")
    made = bring(path, tokenizer=llama, runs="Qwen2ForCausalLM")
    assert same_weights(made.folder, model)


def test_an_architecture_that_nobody_reads_is_refused_by_name(
    bring: Import, tmp_path: Path
) -> None:
    path = write_gguf(tmp_path / "m.gguf", a_model("llama"), "dream")
    with pytest.raises(ArtifactError, match="GGUF files of dream: import the model's original"):
        bring(path)


def test_experts_are_refused_by_the_tensors_name(bring: Import, tmp_path: Path) -> None:
    model = a_model("llama")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_NAMES, "mlp.gate_proj", "ffn_gate_exps")
        path = write_gguf(tmp_path / "m.gguf", model)
    with pytest.raises(ArtifactError, match=r"a tensor blk.0.ffn_gate_exps.weight"):
        bring(path)


def test_a_file_that_was_cut_is_refused(bring: Import, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", a_model("llama"))
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ArtifactError, match="cannot be read as GGUF"):
        bring(path)
    path.write_bytes(b"no GGUF at all")
    with pytest.raises(ArtifactError, match="cannot be read as GGUF"):
        bring(path)


@pytest.mark.slow
def test_the_real_smollm2_is_the_starter_model(bring: Import, tmp_path: Path) -> None:
    made = bring(generator.SOURCE.file(generator.GGUF))
    (tmp_path / "starter").mkdir()
    generator.build(tmp_path / "starter")
    for name in ("model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"):
        assert (made.folder / name).read_bytes() == (tmp_path / "starter" / name).read_bytes()
    assert made.manifest.limits.max_context_tokens == 8192
