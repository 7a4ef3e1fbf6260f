"""What is counted of an engine's outputs, and which options an engine starts with."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deployments import vllm_engine
from deployments.vllm_engine import (
    CPU_EXECUTOR,
    CPU_STEP_TOKENS,
    GPU_ARGUMENTS,
    STRUCTURED_OUTPUTS,
    Meter,
    engine_options,
)
from modelyard.artifacts.manifest import Limits, Manifest
from modelyard.config.model_args import EngineArgs
from modelyard.contract.envelope import Usage
from modelyard.contract.errors import Forbidden
from modelyard.contract.operations import Kind
from modelyard.tenancy.entitlements import require_context
from modelyard.testing.manifests import a_manifest

FOLDER = Path("/models/gen/1.0.0")
OF_A_CPU = {
    "enforce_eager",
    "distributed_executor_backend",
    "block_size",
    "kv_cache_memory_bytes",
    "max_num_batched_tokens",
}


def test_vllm_takes_the_options_of_structured_outputs() -> None:
    from vllm.config import StructuredOutputsConfig

    config = StructuredOutputsConfig(**STRUCTURED_OUTPUTS)
    assert (config.backend, config.disable_any_whitespace) == ("xgrammar", True)


def manifest_of(name: str = "gen", context_tokens: int = 2048) -> Manifest:
    limits = Limits(max_context_tokens=context_tokens, max_output_tokens=64, drain_s=60)
    return a_manifest(name=name, kind=Kind.GENERATOR, limits=limits)


def every_argument() -> EngineArgs:
    """Each argument that a team may give, given, and none with the value of a default of ours."""
    return EngineArgs(
        max_num_seqs=7,
        max_num_batched_tokens=777,
        kv_cache_memory_bytes=7777,
        gpu_memory_utilization=0.7,
        block_size=16,
        tensor_parallel_size=2,
        enforce_eager=False,
        enable_prefix_caching=False,
    )


def completion(tokens: int, finish_reason: str | None = None) -> Any:
    return SimpleNamespace(token_ids=[1] * tokens, finish_reason=finish_reason)


def output(
    *completions: Any, prompt: int | None = 5, cached: int | None = 0, request: str = "r-1"
) -> Any:
    """The part of a vLLM RequestOutput that a meter reads."""
    return SimpleNamespace(
        request_id=request,
        prompt_token_ids=None if prompt is None else [1] * prompt,
        num_cached_tokens=cached,
        outputs=list(completions),
    )


def metered(*outputs: Any) -> Usage:
    meter = Meter()
    for one in outputs:
        meter.observe(one)
    assert meter.output_tokens == meter.usage().output_tokens
    return meter.usage()


async def test_a_prompt_that_a_tenant_may_not_run_never_reaches_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    class AsyncLLM:
        async def generate(self, prompt: Any, params: Any, request_id: str) -> AsyncGenerator[Any]:
            asked.append(request_id)
            made = output(completion(3), prompt=len(prompt["prompt_token_ids"]))
            made.metrics = None
            yield made

    # In place of vLLM's, whose import takes many seconds.
    fake = SimpleNamespace(AsyncLLM=AsyncLLM)
    monkeypatch.setitem(sys.modules, "vllm.v1.engine.async_llm", fake)
    engine = vllm_engine.metered_class()()
    prompt = {"prompt_token_ids": [1] * 5}
    limited = partial(require_context, 8, param="messages")
    meter = Meter(lambda tokens, cap: limited(tokens, cap_tokens=cap))
    vllm_engine.meter_of_request.set(meter)
    # Raised by the call itself: a stream has not begun, and its error keeps its kind.
    with pytest.raises(Forbidden, match="5 tokens and an output cap of 4"):
        engine.generate(prompt, SimpleNamespace(max_tokens=4), "r-1")
    items = [one async for one in engine.generate(prompt, SimpleNamespace(max_tokens=3), "r-2")]
    assert (asked, len(items)) == (["r-2"], 1)
    assert meter.usage().input_tokens == 5
    assert meter.usage().output_tokens == 3


def test_a_meter_that_saw_nothing_counts_nothing() -> None:
    assert metered() == Usage(0, 0, "stop", 0)


def test_a_unary_answer_is_one_final_output() -> None:
    assert metered(output(completion(9, "length"), cached=4)) == Usage(5, 9, "length", 4)


def test_a_streams_deltas_add_up_and_its_prompt_is_counted_once() -> None:
    deltas = [output(completion(1)), output(completion(2)), output(completion(1, "stop"))]
    assert metered(*deltas) == Usage(5, 4, "stop", 0)


def test_a_stream_that_is_cut_off_is_charged_for_what_it_made() -> None:
    assert metered(output(completion(1)), output(completion(2))).output_tokens == 3


def test_a_delta_without_a_prompt_keeps_the_one_before() -> None:
    usage = metered(
        output(completion(1), cached=3), output(completion(1, "stop"), prompt=None, cached=None)
    )
    assert (usage.input_tokens, usage.cached_tokens) == (5, 3)


def test_what_is_cached_is_known_late_and_the_last_word_counts() -> None:
    usage = metered(output(completion(1), cached=None), output(completion(1, "stop"), cached=3))
    assert (usage.input_tokens, usage.cached_tokens) == (5, 3)


def test_each_of_n_answers_is_counted_and_their_prompt_once() -> None:
    unary = metered(output(completion(3, "stop"), completion(4, "length")))
    assert (unary.input_tokens, unary.output_tokens) == (5, 7)
    streamed = metered(
        output(completion(3)), output(completion(2)), output(completion(2), completion(0, "stop"))
    )
    assert (streamed.input_tokens, streamed.output_tokens) == (5, 7)


def test_several_prompts_add_up_by_their_own_request() -> None:
    usage = metered(
        output(completion(1), prompt=5, cached=2, request="r-1-0"),
        output(completion(1), prompt=7, cached=4, request="r-1-1"),
        output(completion(2, "stop"), prompt=5, cached=2, request="r-1-0"),
        output(completion(2, "stop"), prompt=7, cached=4, request="r-1-1"),
    )
    assert usage == Usage(input_tokens=12, output_tokens=6, finish_reason="stop", cached_tokens=6)


def decided() -> set[str]:
    """The options that are not the same for every manifest, and those that choose the numbers."""
    one = engine_options(FOLDER, manifest_of(), EngineArgs(), gpu=True)
    other = engine_options(
        FOLDER / "other", manifest_of("other", context_tokens=99), EngineArgs(), gpu=True
    )
    return {name for name in one if one[name] != other[name]} | {"dtype", "generation_config"}


def test_what_the_manifest_decides_is_what_the_engine_starts_with() -> None:
    options = engine_options(FOLDER, manifest_of(), EngineArgs(), gpu=True)
    assert options["model"] == "/models/gen/1.0.0"
    assert options["served_model_name"] == ["gen@1.0.0"]
    assert options["max_model_len"] == 2048
    assert (options["dtype"], options["generation_config"]) == ("bfloat16", "vllm")


def test_no_argument_of_a_team_can_replace_what_the_manifest_decides() -> None:
    assert decided() == {
        *("model", "served_model_name", "max_model_len", "dtype", "generation_config")
    }
    assert not decided() & set(EngineArgs.model_fields)
    assert {"model", "max_model_len", "dtype", "generation_config"} <= set(EngineArgs.REFUSED)


@pytest.mark.parametrize("gpu", [True, False])
def test_every_argument_reaches_the_engine_and_changes_nothing_else(gpu: bool) -> None:
    args = every_argument()
    given = args.model_dump(exclude_none=True)
    assert set(given) == set(EngineArgs.model_fields)
    bare = engine_options(FOLDER, manifest_of(), EngineArgs(), gpu=gpu)
    options = engine_options(FOLDER, manifest_of(), args, gpu=gpu)
    kept = {name: given[name] for name in given if gpu or name not in GPU_ARGUMENTS}
    assert options == bare | kept
    assert all(options[name] == bare[name] for name in decided())


def test_a_cpu_gets_a_small_eager_engine_in_this_process() -> None:
    cpu = engine_options(FOLDER, manifest_of(), EngineArgs(), gpu=False)
    gpu = engine_options(FOLDER, manifest_of(), EngineArgs(), gpu=True)
    assert set(cpu) - set(gpu) == OF_A_CPU
    assert {name: cpu[name] for name in gpu} == gpu
    assert (cpu["enforce_eager"], cpu["distributed_executor_backend"]) == (True, CPU_EXECUTOR)


@pytest.mark.parametrize(
    ("args", "tokens"),
    [
        (EngineArgs(), CPU_STEP_TOKENS),
        (EngineArgs(max_num_seqs=2000), 2000),
        (EngineArgs(max_num_batched_tokens=256), 256),
    ],
)
def test_a_step_on_a_cpu_is_short_but_has_a_token_for_each_sequence(
    args: EngineArgs, tokens: int
) -> None:
    options = engine_options(FOLDER, manifest_of(), args, gpu=False)
    assert options["max_num_batched_tokens"] == tokens


@pytest.mark.parametrize("gpu", [True, False])
def test_the_environment_is_set_for_the_device(gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    environment: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", environment)
    vllm_engine.set_environment(gpu=gpu)
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert ("TORCHDYNAMO_DISABLE" in environment) is not gpu
