"""`args` of the model apps: their identity. A change restarts the app (Serve hashes them)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import Field

from modelyard.config.frozen import Frozen

Artifact = Annotated[str, Field(pattern=r"^[a-z0-9]+://[^\x00-\x1f]+$")]

_CHANGES_ANSWERS: Final = "changes answers: make it a new version of the artifact"


class EngineArgs(Frozen):
    """vLLM's engine arguments, under vLLM's names, that change resources and never answers.

    An allow-list: two replicas of one version must answer alike, and a canary compares versions, so
    whatever changes answers belongs to the artifact. None leaves the shell's own choice.
    """

    REFUSED: ClassVar[dict[str, str]] = dict.fromkeys(
        (
            "model",
            "tokenizer",
            "tokenizer_mode",
            "revision",
            "trust_remote_code",
            "dtype",
            "quantization",
            "kv_cache_dtype",
            "max_model_len",
            "max_logprobs",
            "seed",
            "chat_template",
            "generation_config",
            "override_generation_config",
            "hf_overrides",
            "logits_processors",
            "reasoning_parser",
            "tool_call_parser",
            "speculative_config",
            "enable_lora",
            "disable_sliding_window",
        ),
        _CHANGES_ANSWERS,
    )

    max_num_seqs: int | None = Field(default=None, gt=0)
    max_num_batched_tokens: int | None = Field(default=None, gt=0)
    kv_cache_memory_bytes: int | None = Field(default=None, gt=0)
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    block_size: int | None = Field(default=None, gt=0)
    tensor_parallel_size: int | None = Field(default=None, gt=0)
    enforce_eager: bool | None = None
    enable_prefix_caching: bool | None = None


class GeneratorArgs(Frozen):
    """artifact: where the version's folder is, `file://.../<name>/<version>`."""

    artifact: Artifact
    engine: EngineArgs = EngineArgs()


class SmallModelArgs(Frozen):
    """For embedders, classifiers and rerankers."""

    artifact: Artifact


class ControlArgs(Frozen):
    """state_path: a SQLite file on a disk that control always finds again, or `s3://bucket/prefix`
    in a bucket with conditional writes."""

    state_path: Annotated[
        str, Field(pattern=r"^(s3://[^/\x00-\x1f]+(/[^\x00-\x1f]*)?|[/~][^\x00-\x1f]+)$")
    ]


class NoArgs(Frozen):
    """For an app that takes none: any key is a fault."""
