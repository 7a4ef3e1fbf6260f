"""The tensors of a tiny model, under the names that transformers gives them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modelyard.artifacts.manifest import Identity
from modelyard.contract.operations import Kind

ROWS: Final = 264  # of the embeddings: 256 bytes, five special tokens, three rows of padding
# A head of 32 is the least that vLLM's attention on CPU takes.
HIDDEN, HEADS, KV_HEADS, HEAD, INNER = 64, 2, 1, 32, 64

Tensors = dict[str, NDArray[Any]]


def llama_tensors() -> Tensors:
    kv = KV_HEADS * HEAD
    layer = "model.layers.0"
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (ROWS, HIDDEN),
        f"{layer}.self_attn.q_proj.weight": (HEADS * HEAD, HIDDEN),
        f"{layer}.self_attn.k_proj.weight": (kv, HIDDEN),
        f"{layer}.self_attn.v_proj.weight": (kv, HIDDEN),
        f"{layer}.self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD),
        f"{layer}.mlp.gate_proj.weight": (INNER, HIDDEN),
        f"{layer}.mlp.up_proj.weight": (INNER, HIDDEN),
        f"{layer}.mlp.down_proj.weight": (HIDDEN, INNER),
        f"{layer}.input_layernorm.weight": (HIDDEN,),
        f"{layer}.post_attention_layernorm.weight": (HIDDEN,),
        "model.norm.weight": (HIDDEN,),
    }
    return _filled(shapes)


def bert_tensors(identity: Identity) -> Tensors:
    classifier = identity.kind is Kind.CLASSIFIER
    layer = "encoder.layer.0"
    square, wide = (HIDDEN, HIDDEN), (INNER, HIDDEN)
    matrices: dict[str, tuple[int, int]] = {
        f"{layer}.attention.self.query": square,
        f"{layer}.attention.self.key": square,
        f"{layer}.attention.self.value": square,
        f"{layer}.attention.output.dense": square,
        f"{layer}.intermediate.dense": wide,
        f"{layer}.output.dense": (HIDDEN, INNER),
        "pooler.dense": square,
    }
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (ROWS, HIDDEN),
        "embeddings.position_embeddings.weight": (identity.limits.max_context_tokens, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
    }
    for name, shape in matrices.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    norms = ("embeddings", f"{layer}.attention.output", f"{layer}.output")
    for name in norms:
        ends = ("weight", "bias")
        shapes |= {f"{name}.LayerNorm.{end}": (HIDDEN,) for end in ends}
    if classifier:
        shapes = {f"bert.{name}": shape for name, shape in shapes.items()}
        count = len(identity.labels)
        shapes |= {"classifier.weight": (count, HIDDEN), "classifier.bias": (count,)}
    return _filled(shapes)


def _filled(shapes: dict[str, tuple[int, ...]]) -> Tensors:
    """Normal draws; a norm starts as the identity, so that the model's outputs differ by input."""
    draws = np.random.default_rng(0)
    return {
        name: np.ones(shape, np.float32)
        if "norm" in name.lower() and name.endswith("weight")
        else draws.standard_normal(shape).astype(np.float32) * np.float32(0.2)
        for name, shape in shapes.items()
    }
