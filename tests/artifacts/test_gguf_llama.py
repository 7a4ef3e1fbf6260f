import numpy
import pytest

from modelyard.artifacts.gguf_llama import hf_name, unpermuted


@pytest.mark.parametrize(
    ("gguf", "expected"),
    [
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("output_norm.weight", "model.norm.weight"),
        ("blk.12.attn_k.weight", "model.layers.12.self_attn.k_proj.weight"),
        ("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"),
    ],
)
def test_names(gguf: str, expected: str) -> None:
    assert hf_name(gguf) == expected


def test_the_halves_of_each_head_come_apart() -> None:
    interleaved = numpy.array([[0], [2], [1], [3], [10], [12], [11], [13]])
    assert unpermuted(interleaved, heads=2).ravel().tolist() == [0, 1, 2, 3, 10, 11, 12, 13]
