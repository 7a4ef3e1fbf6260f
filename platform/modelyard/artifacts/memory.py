"""How much memory one replica cannot do without. Pure: sizes in, bytes out."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from modelyard.artifacts.manifest import Manifest
from modelyard.artifacts.model_config import ModelConfig
from modelyard.contract.operations import Kind

ELEMENT_BYTES: Final = {"bfloat16": 2, "float16": 2, "float32": 4}
_FP8: Final = frozenset({"fp8", "fp8_e4m3", "fp8_e5m2"})
# Measured, not counted: a vLLM engine process on CPU, without its weights and its KV cache
# (1.13 GB of PSS, less 0.27 and 0.13 GB: shared/facts/ray-serve-and-vllm.md, line 342). Taken for
# each accelerator as well, as a floor: nothing was measured there.
ENGINE_OVERHEAD_BYTES: Final = 700_000_000
# A replica of a small encoder: 0.45 GB of PSS, less 0.09 GB of weights (the same file, line 361).
SMALL_OVERHEAD_BYTES: Final = 350_000_000
# Hidden states that are alive at once while a layer runs: its input, q, k, v, the attention's
# output and the residual. The feed-forward's inner state is counted by its own width.
_HIDDEN_STATES: Final = 6


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes, by what holds them. cache: KV of one full context, activations of one full input."""

    weights: int
    overhead: int
    cache: int

    @property
    def total(self) -> int:
        return self.weights + self.overhead + self.cache

    def __str__(self) -> str:
        return (
            f"weights {self.weights / 1e9:.2f} + overhead {self.overhead / 1e9:.2f} + "
            f"one context {self.cache / 1e9:.2f}"
        )


def need_bytes(config: ModelConfig, manifest: Manifest, stored_bytes: int) -> Need:
    """What this version needs at least. Raises ArtifactError for a config that lacks a size.

    stored_bytes: of the tensors. A declared need below this cannot be true; above it is the
    author's to say, since concurrency, which needs more KV cache, is set by the app.
    """
    weights = weights_bytes(manifest, stored_bytes)
    tokens = manifest.limits.max_context_tokens
    if manifest.kind is Kind.GENERATOR:
        overhead = ENGINE_OVERHEAD_BYTES * max(1, manifest.device.accelerators)
        return Need(weights, overhead, tokens * kv_bytes_per_token(config, manifest))
    element = ELEMENT_BYTES[manifest.runtime.dtype]
    width = _HIDDEN_STATES * config.hidden_size + config.intermediate_size
    return Need(weights, SMALL_OVERHEAD_BYTES, tokens * width * element)


def weights_bytes(manifest: Manifest, stored_bytes: int) -> int:
    """Of the weights at the type they are computed in; quantised ones stay as they are stored."""
    if manifest.weights.dtype == "quantized" or manifest.runtime.engine_args.quantization:
        return stored_bytes
    stored = ELEMENT_BYTES[manifest.weights.dtype]
    return ceil(stored_bytes * ELEMENT_BYTES[manifest.runtime.dtype] / stored)


def kv_bytes_per_token(config: ModelConfig, manifest: Manifest) -> int:
    """Keys and values of every layer: 2 x layers x KV heads x head size x bytes (PagedAttention,
    Kwon et al. 2023, section 3). Latent attention keeps one compressed vector per layer instead
    (DeepSeek-V2, section 2.1), a state space model's layers keep none and are counted too high."""
    given = manifest.runtime.engine_args.kv_cache_dtype
    dtype = manifest.runtime.dtype if given in (None, "auto") else given
    element = 1 if dtype in _FP8 else ELEMENT_BYTES[dtype]
    latent = config.find("kv_lora_rank")
    if latent is not None:
        return config.layers * (latent + (config.find("qk_rope_head_dim") or 0)) * element
    return 2 * config.layers * config.kv_heads * config.head_size * element
