"""One vLLM engine and its own OpenAI serving layer, in this process.

vLLM is imported inside functions: the app builder imports this package in a Ray task, which must
stay light, and the engine's environment has to be set before the first import.
"""

from __future__ import annotations

import argparse
import contextvars
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deployments import traced
from modelyard.artifacts.manifest import Manifest
from modelyard.config.model_args import EngineArgs
from modelyard.contract.envelope import Usage
from modelyard.lifecycle.report import Description

if TYPE_CHECKING:
    from starlette.datastructures import State

# Set here and not in ray_actor_options: a Serve config's option dict replaces the code's whole, so
# a team that only wanted another num_cpus would lose them (`modelyard check` refuses the reverse).
ENVIRONMENT: Final = {
    # vLLM's dictConfig closes every handler of the process. Serve asks its own for the log's path
    # when a controller starts anew, and replaced each generator whose handler was closed.
    "VLLM_CONFIGURE_LOGGING": "0",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
CPU_ENVIRONMENT: Final = {
    # Without it the first sampled request compiles C++ for 20-30 s, eager mode or not.
    "TORCHDYNAMO_DISABLE": "1",
    # "auto" binds every engine of a host to the same cores.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
# The class path, because the CPU platform rewrites "uni" to "mp": one process and 490 MB more.
CPU_EXECUTOR: Final = "vllm.v1.executor.uniproc_executor.UniProcExecutor"
STRUCTURED_OUTPUTS: Final[dict[str, Any]] = {
    # What contract/grammar.py lets through was measured with xgrammar. "auto" would hand what it
    # cannot do to other backends, of which one took 5.7 s for a schema of 7 KB.
    "backend": "xgrammar",
    # A small model that may write white space between two fields writes it until the output cap.
    "disable_any_whitespace": True,
}
# The CPU default of 128 means that prompts sharing less than 128 tokens never hit the prefix cache.
CPU_BLOCK_SIZE: Final = 32
# Tokens of one engine step. vLLM's default takes a near-limit prompt in a single step, behind which
# every stream waits for seconds, and a stall can hide as long: the watchdog allows four of them.
CPU_STEP_TOKENS: Final = 1024
# Of devices: on a CPU (where GPUs are emulated) there is nothing to spread over, and vLLM would
# take the share of the machine's memory.
GPU_ARGUMENTS: Final = frozenset({"tensor_parallel_size", "gpu_memory_utilization"})


class Meter:
    """Counts one request's tokens where they are made: nobody parses an answer for them."""

    def __init__(self, require_context: Callable[[int, int], None] | None = None) -> None:
        """`require_context(prompt_tokens, cap_tokens)` raises for what a tenant may not use."""
        self._require_context = require_context
        self.output_tokens = 0
        self.finish_reason = "stop"
        self._inputs: dict[str, tuple[int, int]] = {}

    def check(self, prompt: Any, sampling_params: Any) -> None:
        """What is about to be run: here alone the length of a rendered prompt is known."""
        if self._require_context is not None:
            self._require_context(len(prompt["prompt_token_ids"]), sampling_params.max_tokens)

    def observe(self, output: Any) -> None:
        """Take a vLLM RequestOutput. Streams carry deltas, unary calls one final output."""
        prompt = output.prompt_token_ids
        if prompt is not None:
            self._inputs[output.request_id] = (len(prompt), output.num_cached_tokens or 0)
        for completion in output.outputs:
            self.output_tokens += len(completion.token_ids)
            if completion.finish_reason is not None:
                self.finish_reason = completion.finish_reason

    def usage(self) -> Usage:
        return Usage(
            input_tokens=sum(tokens for tokens, _ in self._inputs.values()),
            output_tokens=self.output_tokens,
            finish_reason=self.finish_reason,
            cached_tokens=sum(cached for _, cached in self._inputs.values()),
        )


def engine_stages(stats: Any) -> Iterator[tuple[str, int, int]]:
    """Queue, prefill and decode of a finished request, for its trace. stats: its RequestStateStats,
    whose times are seconds of the engine's monotonic clock; None when vLLM kept none."""
    if stats is None or not stats.queued_ts:
        return
    zero_ns = time.time_ns() - time.monotonic_ns()
    marks = (stats.queued_ts, stats.scheduled_ts, stats.first_token_ts, stats.last_token_ts)
    at_ns = [zero_ns + int(mark * 1e9) for mark in marks]
    yield from zip(("queue", "prefill", "decode"), at_ns, at_ns[1:], strict=False)


meter_of_request: contextvars.ContextVar[Meter | None] = contextvars.ContextVar(
    "meter_of_request", default=None
)


def set_environment(*, gpu: bool) -> None:
    """Prepare this process for vLLM. Must run before vllm or torch is first imported."""
    os.environ.update(ENVIRONMENT)
    if not gpu:
        os.environ.update(CPU_ENVIRONMENT)


async def start_engine(
    folder: Path,
    manifest: Manifest,
    args: EngineArgs,
    description: Description,
    *,
    gpu: bool,
    stat_loggers: Sequence[Any] = (),
) -> tuple[Any, State]:
    """The running engine and vLLM's serving objects. Must run on the loop that will serve."""
    from starlette.datastructures import State
    from vllm.config import StructuredOutputsConfig
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.api_server.app_state import init_app_state
    from vllm.entrypoints.launchers.cli_args import FrontendArgs

    engine_args = AsyncEngineArgs(
        **engine_options(folder, manifest, args, gpu=gpu),
        structured_outputs_config=StructuredOutputsConfig(**STRUCTURED_OUTPUTS),
    )
    engine = metered_class().from_engine_args(engine_args, stat_loggers=list(stat_loggers))
    tool_call_parser = manifest.runtime.engine_args.tool_call_parser
    frontend = FrontendArgs(
        enable_auto_tool_choice=tool_call_parser is not None,
        tool_call_parser=tool_call_parser,
        tool_strict_level="parameter",  # tool arguments obey their schema without asking for it
        enable_prompt_tokens_details=True,
        fingerprint_mode="custom",
        fingerprint_value=description.fingerprint,
    )
    state = State()
    await init_app_state(
        engine,
        state,
        argparse.Namespace(**(vars(frontend) | vars(engine_args))),
        supported_tasks=await engine.get_supported_tasks(),
    )
    return engine, state


def engine_options(
    folder: Path, manifest: Manifest, args: EngineArgs, *, gpu: bool
) -> dict[str, Any]:
    """AsyncEngineArgs as a dict. What changes answers comes from the manifest, not from `args`."""
    # Its parser of tool calls is the serving layer's, not the engine's.
    of_version = manifest.runtime.engine_args.model_dump(
        exclude_none=True, exclude={"tool_call_parser"}
    )
    options: dict[str, Any] = {
        "model": str(folder),
        "served_model_name": [manifest.full_name],
        "dtype": manifest.runtime.dtype,
        "max_model_len": manifest.limits.max_context_tokens,
        "generation_config": "vllm",
        "enable_prefix_caching": True,
        "disable_log_stats": False,
    }
    if not gpu:
        options |= {
            "enforce_eager": True,
            "distributed_executor_backend": CPU_EXECUTOR,
            "block_size": CPU_BLOCK_SIZE,
            "kv_cache_memory_bytes": 256 * 1024 * 1024,
            # vLLM refuses fewer than a token for each sequence.
            "max_num_batched_tokens": max(CPU_STEP_TOKENS, args.max_num_seqs or 0),
        }
    of_devices = GPU_ARGUMENTS if not gpu else frozenset()
    return options | of_version | args.model_dump(exclude_none=True, exclude=set(of_devices))


def metered_class() -> Any:
    """AsyncLLM that feeds the request's Meter. Made here because the base is imported late."""
    from vllm.v1.engine.async_llm import AsyncLLM

    class MeteredLLM(AsyncLLM):
        def generate(
            self, prompt: Any, sampling_params: Any, *args: Any, **kwargs: Any
        ) -> AsyncGenerator[Any]:
            """Raises at once, not at the first item: by then vLLM would make an error chunk of it,
            which has lost what kind of error it was."""
            meter = meter_of_request.get()
            outputs = super().generate(prompt, sampling_params, *args, **kwargs)
            if meter is None:
                return outputs
            meter.check(prompt, sampling_params)
            return self._metered(outputs, meter)

        async def _metered(self, outputs: AsyncGenerator[Any], meter: Meter) -> AsyncGenerator[Any]:
            stats = None
            async with aclosing(outputs):
                async for output in outputs:
                    meter.observe(output)
                    stats = output.metrics
                    yield output
            traced.add(engine_stages(stats))

    return MeteredLLM
