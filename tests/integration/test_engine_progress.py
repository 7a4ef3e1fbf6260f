"""A real vLLM engine under the watchdog: a long prefill is work, a stopped process is a stall.

In this process and without a platform: only the engine, its processes and its steps matter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from deployments import vllm_engine
from deployments.vllm_progress import EngineProcesses, progress_logger
from modelyard.lifecycle.progress import Progress
from modelyard.lifecycle.watchdog import Evidence, Watchdog

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MODEL = "smollm2-135m-instruct"
LONG_TOKENS = 4000
PERIOD_S = 0.1


class Watched:
    """An engine, and two watchdogs over it: one that sees what its processes burn, one blind."""

    def __init__(self, engine: Any, progress: Progress) -> None:
        self.engine = engine
        self.progress = progress
        self.processes = EngineProcesses()
        self.words: list[str] = []
        self.blind_words: list[str] = []

    @property
    def busy(self) -> bool:
        return bool(self.engine.get_num_unfinished_requests())

    async def watch(self, stall_after_s: float) -> None:
        seeing, blind = (Watchdog(stall_after_s, period_s=PERIOD_S) for _ in range(2))
        while True:
            now, steps = time.monotonic(), self.progress.steps
            evidence = Evidence(steps, self.busy, self.processes.cpu_s())
            self.words += filter(None, [seeing.check(now, evidence)])
            self.blind_words += filter(None, [blind.check(now, Evidence(steps, self.busy))])
            await asyncio.sleep(PERIOD_S)

    async def run(self, name: str, first_token: int, tokens: int, max_tokens: int) -> None:
        from vllm import SamplingParams

        prompt = {"prompt_token_ids": [first_token + i % 500 for i in range(tokens)]}
        params = SamplingParams(max_tokens=max_tokens, ignore_eos=True, temperature=0)
        async for _ in self.engine.generate(prompt, params, name):
            pass


@pytest.fixture(scope="module")
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (vllm_engine.ENVIRONMENT | vllm_engine.CPU_ENVIRONMENT).items():
            patch.setenv(name, value)
        yield


@pytest.fixture
async def watched(starter_models: Path, environment: None) -> AsyncIterator[Watched]:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    progress = Progress()
    [folder] = (starter_models / MODEL).glob("*/config.json")
    arguments = AsyncEngineArgs(
        model=str(folder.parent),
        dtype="bfloat16",
        max_model_len=8192,
        max_num_batched_tokens=8192,
        enforce_eager=True,
        distributed_executor_backend=vllm_engine.CPU_EXECUTOR,
        block_size=vllm_engine.CPU_BLOCK_SIZE,
        kv_cache_memory_bytes=768 * 1024 * 1024,
        enable_prefix_caching=False,
    )
    engine = AsyncLLM.from_engine_args(arguments, stat_loggers=[progress_logger(progress)])
    made = Watched(engine, progress)
    try:
        yield made
    finally:
        engine.shutdown()


async def test_a_long_prefill_is_no_stall_and_a_stopped_engine_is(watched: Watched) -> None:
    await watched.run("first", 100, 8, 4)  # what is slow once
    began = time.monotonic()
    await watched.run("long", 1000, LONG_TOKENS, 1)
    longest_s = time.monotonic() - began
    print(f"a prefill of {LONG_TOKENS} tokens took {longest_s:.2f} s")
    # Half of what a prefill took just now, so that one is longer whatever this machine is.
    watching = asyncio.create_task(watched.watch(longest_s / 2))
    # The next prefill takes the whole token budget of a step: the others wait for theirs.
    await asyncio.gather(
        *(watched.run(f"prefill-{i}", 2000 + 700 * i, LONG_TOKENS, 2) for i in range(3)),
        *(watched.run(f"waiting-{i}", 5000 + 10 * i, 8, 8) for i in range(3)),
    )
    assert watched.blind_words, "no step was longer than the allowance: the test shows nothing"
    assert watched.words == []

    [core] = [p for p in psutil.Process().children(recursive=True) if is_engine(p)]
    stream = asyncio.create_task(watched.run("stopped", 9000, 8, 2000))
    steps = watched.progress.steps
    while watched.progress.steps == steps:  # noqa: ASYNC110  the engine tells no event of ours
        await asyncio.sleep(0.01)
    core.suspend()
    while not watched.words:
        await asyncio.sleep(PERIOD_S)
        assert not watching.done()
    assert "without a step" in watched.words[0]
    assert "computes" not in watched.words[0]
    watching.cancel()
    stream.cancel()
    watched.processes.kill()  # a stopped process too
    core.wait(timeout=30)
    assert not core.is_running()


def is_engine(process: psutil.Process) -> bool:
    return process.memory_info().rss > 300 * 2**20
