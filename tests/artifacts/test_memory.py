"""Bytes of models whose sizes are public, and what must grow with what."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.artifacts.manifest import AnswerArgs, Device, Limits, Manifest, Runtime
from modelyard.artifacts.memory import (
    ENGINE_OVERHEAD_BYTES,
    SMALL_OVERHEAD_BYTES,
    kv_bytes_per_token,
    need_bytes,
    weights_bytes,
)
from modelyard.artifacts.model_config import ModelConfig
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import a_manifest

LLAMA_3_8B = {
    "vocab_size": 128256,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
}
GPT_2 = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
DEEPSEEK_V3 = LLAMA_3_8B | {"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}


def config(record: dict[str, Any]) -> ModelConfig:
    return ModelConfig(Path("config.json"), record, record)


def generator(*, context_tokens: int = 8192, accelerators: int = 1, **args: Any) -> Manifest:
    return a_manifest(
        kind=Kind.GENERATOR,
        limits=Limits(max_context_tokens=context_tokens, max_output_tokens=64, drain_s=60),
        runtime=Runtime(engine="vllm", engine_args=AnswerArgs(**args)),
        device=Device(accelerators=accelerators, min_memory_gb=40),
    )


@pytest.mark.parametrize(
    ("record", "args", "expected"),
    [
        (LLAMA_3_8B, {}, 131_072),  # 128 KiB: the figure that is quoted for Llama 3 8B
        (LLAMA_3_8B, {"kv_cache_dtype": "fp8"}, 65_536),
        (GPT_2, {}, 36_864),  # as many heads of keys and values as of queries
        (DEEPSEEK_V3, {}, 70_272),  # DeepSeek-V3's own figure, 70.272 KB
    ],
)
def test_keys_and_values_of_a_token(
    record: dict[str, Any], args: dict[str, Any], expected: int
) -> None:
    assert kv_bytes_per_token(config(record), generator(**args)) == expected


def test_a_generator_needs_weights_overhead_and_one_full_context() -> None:
    stored = 16_060_522_240
    manifest = generator().model_copy(
        update={"weights": a_manifest().weights.model_copy(update={"dtype": "bfloat16"})}
    )
    need = need_bytes(config(LLAMA_3_8B), manifest, stored)
    assert need.total == stored + ENGINE_OVERHEAD_BYTES + 8192 * 131_072
    assert str(need) == "weights 16.06 + overhead 0.70 + one context 1.07"


def test_each_accelerator_has_its_own_overhead() -> None:
    one, two = (
        need_bytes(config(LLAMA_3_8B), generator(accelerators=count), 10**9) for count in (1, 2)
    )
    assert two.overhead - one.overhead == ENGINE_OVERHEAD_BYTES


def test_weights_count_at_the_type_they_are_computed_in() -> None:
    stored = a_manifest().weights.model_copy(update={"dtype": "float32"})
    bf16 = a_manifest(weights=stored)
    assert weights_bytes(bf16, 1000) == 500
    quantised = a_manifest(weights=stored.model_copy(update={"dtype": "quantized"}))
    assert weights_bytes(quantised, 1000) == 1000


def test_a_small_model_needs_no_cache_but_room_for_one_input() -> None:
    record = {"hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 12}
    need = need_bytes(config(record), a_manifest(), 90_000_000)
    assert need.overhead == SMALL_OVERHEAD_BYTES
    assert need.cache == 512 * (6 * 384 + 1536) * 2


@given(
    context_tokens=st.integers(65, 10**6), more=st.integers(1, 10**6), layers=st.integers(1, 200)
)
def test_a_longer_context_never_needs_less(context_tokens: int, more: int, layers: int) -> None:
    model = config(LLAMA_3_8B | {"num_hidden_layers": layers})
    short = need_bytes(model, generator(context_tokens=context_tokens), 1)
    long = need_bytes(model, generator(context_tokens=context_tokens + more), 1)
    assert long.cache - short.cache == more * kv_bytes_per_token(model, generator())
