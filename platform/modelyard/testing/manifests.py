"""A manifest for a test that needs the record only, and no folder."""

from __future__ import annotations

from typing import Any, Final

from modelyard.artifacts.manifest import Identity, Manifest
from modelyard.contract.operations import Kind

_SHA256: Final = "0" * 64


def an_identity(**changes: Any) -> Identity:
    """An embedder `tiny@1.0.0` for 512 tokens; `kind=...` brings what that kind must have."""
    return Identity.model_validate(_identity(changes))


def a_manifest(**changes: Any) -> Manifest:
    """The same with made-up digests: no folder fits it. Fields by name, whole ones only."""
    record = {
        "weights": {"dtype": "float32", "size_bytes": 1, "sha256": _SHA256},
        "tokenizer": {"sha256": _SHA256, "vocab_size": 1},
        "files": (),
    }
    return Manifest.model_validate(_identity(record | changes))


def _identity(changes: dict[str, Any]) -> dict[str, Any]:
    kind = Kind(changes.get("kind", Kind.EMBEDDER))
    generator = kind is Kind.GENERATOR
    limits: dict[str, Any] = {"max_context_tokens": 512, "drain_s": 30}
    of_kind: dict[Kind, dict[str, Any]] = {
        Kind.GENERATOR: {"limits": limits | {"max_output_tokens": 128}},
        Kind.EMBEDDER: {"embedding_space": "tiny"},
        Kind.CLASSIFIER: {"labels": ("no", "yes")},
        Kind.RERANKER: {"score_kind": "bi-encoder"},
    }
    common = {
        "schema": "modelyard/manifest/v1",
        "name": "tiny",
        "version": "1.0.0",
        "kind": kind,
        "license": "Apache-2.0",
        "source": "a test",
        "limits": limits,
        "runtime": {"engine": "vllm" if generator else "torch"},
        "device": {"accelerators": 0, "min_memory_gb": 4},
    }
    return common | of_kind[kind] | changes
