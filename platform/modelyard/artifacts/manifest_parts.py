"""The parts of a manifest. The text under each field is its description in the JSON Schema."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# torch's and vLLM's names. Of quantised weights, whose tensors are of several types, `quantized`.
StoredDtype = Literal["bfloat16", "float16", "float32", "quantized"]
ComputeDtype = Literal["bfloat16", "float16", "float32"]
WarmPrompt = Literal["short", "medium", "near-max-context"]

WARM_PROMPTS: Final[tuple[WarmPrompt, ...]] = ("short", "medium", "near-max-context")


class Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


class File(Part):
    """One file of the folder."""

    path: str = Field(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$")
    """Relative to the folder, with slashes."""
    size_bytes: int = Field(ge=0)
    sha256: Sha256

    @field_validator("path")
    @classmethod
    def _inside_the_folder(cls, path: str) -> str:
        if set(path.split("/")) & {".", ".."}:
            raise ValueError(f"{path!r} may lead out of the folder: name the file directly")
        return path


class Limits(Part):
    """What a request may ask of this version, and how long its answers take."""

    max_context_tokens: int = Field(gt=0)
    """Prompt plus answer of a generator; each input of the others."""
    max_output_tokens: int | None = Field(default=None, gt=0)
    """The most a generator may write. Only a generator has it, and must."""
    drain_s: float = Field(gt=0, le=3600)
    """How long the longest answer may take: a replica that leaves is given at least that."""


class Weights(Part):
    """The tensors as stored."""

    format: Literal["safetensors"] = "safetensors"
    dtype: StoredDtype
    """The type of most elements; `quantized` where config.json has a quantization_config."""
    size_bytes: int = Field(gt=0)
    """Of the weight files together."""
    sha256: Sha256
    """Of the weight files' lines `<sha256>  <path>` in the order of their paths, as
    `sha256sum *.safetensors | sha256sum` prints it."""


class Tokenizer(Part):
    """The tokenizer and the chat template that the weights were trained with."""

    sha256: Sha256
    """Of tokenizer.json."""
    vocab_size: int = Field(gt=0)
    """Its tokens with those added."""
    chat_template_sha256: Sha256 | None = None
    """Of the template's text, wherever the folder keeps it; none for a model without one."""


class AnswerArgs(Part):
    """Engine arguments under vLLM's names that change answers, so they are the version's.

    Those that change resources only are the app's (`args.engine`).
    """

    quantization: str | None = None
    """How vLLM reads or makes quantised weights; none: as config.json says."""
    kv_cache_dtype: Literal["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"] | None = None
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    """vLLM's parser that finds this model's tool calls; none: no tools."""


class Runtime(Part):
    """What computes it."""

    engine: Literal["vllm", "torch"]
    """`vllm` for a generator, `torch` for the others."""
    version: str | None = None
    """A specifier of the engine's release as pip reads it, such as `>=0.11,<0.33`: another release
    may answer differently."""
    image: str | None = Field(default=None, pattern=r"^[^\s@]+@sha256:[0-9a-f]{64}$")
    """A container image by digest; compared where MODELYARD_IMAGE says what runs."""
    dtype: ComputeDtype = "bfloat16"
    """What it computes in."""
    engine_args: AnswerArgs = AnswerArgs()

    @field_validator("version")
    @classmethod
    def _is_a_specifier(cls, version: str | None) -> str | None:
        try:
            SpecifierSet(version or "")
        except InvalidSpecifier as error:
            raise ValueError(f"{error}: write it as pip reads it, such as ==0.32.*") from error
        return version


class Device(Part):
    """What one replica needs."""

    accelerators: int = Field(default=1, ge=0, le=64)
    """0: it runs on CPU."""
    min_memory_gb: float = Field(gt=0)
    """In 1e9 bytes, of all its accelerators together, or of host memory without one; covers
    weights, overhead and the KV cache of one full context."""


class Warmup(Part):
    """What runs before a replica is ready."""

    prompts: tuple[WarmPrompt, ...] = WARM_PROMPTS
    golden_sha256: Sha256 | None = None
    """Of the folder's golden.json, the prompts whose answers are known; none: no self-test, which
    `modelyard check` warns of."""


class Eval(Part):
    """The evaluation that this version passed before it was packaged."""

    suite: str = Field(min_length=1)
    passed_at: AwareDatetime
    results: dict[str, float] = Field(default_factory=dict)
