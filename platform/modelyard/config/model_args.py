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


_BudgetS = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class StartBudgets(Frozen):
    """How long each phase of a start may take. The seed's startup probe: slow is not broken."""

    scheduled_s: _BudgetS = 600
    fetching_s: _BudgetS = 3600
    verifying_s: _BudgetS = 1200
    loading_s: _BudgetS = 1200
    warming_s: _BudgetS = 600
    self_test_s: _BudgetS = 120


class WatchdogArgs(Frozen):
    """stall_after_s: how long a busy replica may go without progress; never less than 4 of the
    longest step of its warm-up."""

    stall_after_s: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 10


class ModelArgs(Frozen):
    """Of every model app. artifact: where the version is, `<root>/<name>/<version>` under file://
    or s3://. digest: the manifest's; with it, another manifest there is refused."""

    artifact: Artifact
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    start_budgets: StartBudgets = StartBudgets()
    watchdog: WatchdogArgs = WatchdogArgs()


class GeneratorArgs(ModelArgs):
    """engine: what this deployment gives the engine of its resources."""

    engine: EngineArgs = EngineArgs()


class SmallModelArgs(ModelArgs):
    """For embedders, classifiers and rerankers. gpu_memory_utilization: the share of its device's
    memory that a replica may take, as vLLM's argument of that name; None for all of it."""

    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None


class ControlArgs(Frozen):
    """state_path: a SQLite file on a disk that control always finds again, or `s3://bucket/prefix`
    in a bucket with conditional writes."""

    state_path: Annotated[
        str, Field(pattern=r"^(s3://[^/\x00-\x1f]+(/[^\x00-\x1f]*)?|[/~][^\x00-\x1f]+)$")
    ]


class NoArgs(Frozen):
    """For an app that takes none: any key is a fault."""
