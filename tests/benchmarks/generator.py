"""Tokens per second, first token and gaps between tokens, against vLLM's own OpenAI server.

    .venv/bin/python -m tests.benchmarks.generator            about 6 minutes
    .venv/bin/python -m tests.benchmarks.generator --quick    about 3, of which 1.5 to start

Both servers are up at once with the same weights, engine arguments, environment and niceness, and
take turns under the same load: streaming chats of 64 tokens. Who is not asked must not use the CPU;
the last column shows what it used.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, Final

from deployments.vllm_engine import CPU_ENVIRONMENT, ENVIRONMENT, engine_options
from modelyard.artifacts.manifest import read_manifest
from modelyard.artifacts.store import resolve
from modelyard.config.model_args import GeneratorArgs
from modelyard.config.settings import Settings
from tests.benchmarks import measure
from tests.benchmarks.load import Job, Loader
from tests.benchmarks.servers import Server, idle_percent, platform, served
from tests.benchmarks.stage import App, Stage, local_apps, staged
from tests.benchmarks.turns import Bench, Turn, take_turns

APP: Final = "smollm2-135m-instruct@1.0.0"
ALIAS: Final = "support-assistant"
CHAT: Final = "/v1/chat/completions"
TOKENS: Final = 64
PROMPTS: Final = 64
REQUESTS: Final = {1: 4, 8: 16, 16: 32}  # streams: requests a window
VLLM_GROUP: Final = "vllm"


def job(server: Server, streams: int, seed: int) -> Job:
    bodies = [json.dumps(chat(server.model, number, stream=True)) for number in range(PROMPTS)]
    return server.job(bodies, streams, seed, requests=REQUESTS[streams])


def chat(model: str, number: int, *, stream: bool) -> dict[str, Any]:
    """A chat of exactly TOKENS output tokens."""
    text = f"{number} people ask: what should a small team write down after an outage, and why?"
    return {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": TOKENS,
        "ignore_eos": True,
        "temperature": 0,
        "stream": stream,
    }


def vllm_command(args: GeneratorArgs, port: int) -> list[str]:
    """vLLM's own server with exactly the engine options that our replica is given."""
    folder = resolve(args.artifact, Settings.from_environment().home)
    options = engine_options(folder, read_manifest(folder), args.engine, gpu=False)
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--host=127.0.0.1", f"--port={port}", "--uvicorn-log-level=warning"]
    command += ["--structured-outputs-config.backend=xgrammar"]
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            command.append(flag)
        elif isinstance(value, list):
            command += [flag, *value]
        elif value is not False:
            command.append(f"{flag}={value}")
    return command


def vllm_environment(stage: Stage) -> dict[str, str]:
    """What our engine's process has: Ray sets its OpenMP threads to the replica's CPUs."""
    [engine] = stage.processes("VLLM::EngineCore")
    threads = engine.environ()["OMP_NUM_THREADS"]
    return {**ENVIRONMENT, **CPU_ENVIRONMENT, "OMP_NUM_THREADS": threads}


def require_same_work(servers: list[Server]) -> None:
    """Raises AssertionError unless both answer one prompt with the same text of TOKENS tokens."""
    texts = []
    for server in servers:
        record = server.ask(chat(server.model, 0, stream=False))
        assert record["usage"]["completion_tokens"] == TOKENS, record["usage"]
        texts.append(record["choices"][0]["message"]["content"])
    assert texts[0] == texts[1], texts


def show(streams: int, turns: dict[Server, list[Turn]]) -> None:
    ours, theirs = turns.values()
    rows = []
    for server, each in turns.items():
        rows.append([
            server.name,
            measure.spread([tokens_per_s(turn) for turn in each], 0),
            measure.spread([turn.load.first_p50_ms for turn in each], 1),
            measure.spread([turn.load.gap_p50_ms for turn in each], 1),
            measure.spread([turn.load.gap_p99_ms for turn in each], 1),
            f"{median(turn.path_ms(server.groups) for turn in each) / TOKENS:.2f}",
            idle_percent(server, turns),
        ])  # fmt: skip
    head = ["server", "tokens/s", "TTFT p50 ms", "ITL p50 ms", "ITL p99 ms", "CPU ms/token"]
    measure.print_table(f"{streams} streams of {TOKENS} tokens", [*head, "CPU when idle"], rows)
    per_s = measure.paired_ratio([tokens_per_s(t) for t in ours], [tokens_per_s(t) for t in theirs])
    p99 = measure.paired_ratio(
        [t.load.gap_p99_ms for t in ours], [t.load.gap_p99_ms for t in theirs]
    )
    added = measure.median_interval(
        [a.load.first_p50_ms - b.load.first_p50_ms for a, b in zip(ours, theirs, strict=True)]
    )
    print(f"tokens/s ratio {per_s}; ITL p99 ratio {p99}; TTFT p50 added ms {added}")
    if streams == 1:
        print(f"bar: at most 5 ms are added to TTFT p50: {added.verdict(5)}")
    if streams == 16:
        print(f"bar: tokens/s, median from 1.0: {per_s.verdict(1, at_least=True)}")
        print(f"bar: tokens/s, interval from 0.95: {per_s.verdict(0.95, at_least=True)}")
        print(f"bar: ITL p99 at most 1.2 times: {p99.verdict(1.2)}")


def tokens_per_s(turn: Turn) -> float:
    return turn.load.per_s * TOKENS


def apps_and_args() -> tuple[list[App], GeneratorArgs]:
    apps = local_apps(APP)
    model = next(app for app in apps if app["name"] == APP)
    return apps, GeneratorArgs.model_validate(model["args"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2 rounds: a smoke test")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--port-offset", type=int, default=470)
    parser.add_argument("--json", type=Path, help="write every window's figures here")
    chosen = parser.parse_args()
    about = measure.machine()
    print(" · ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    apps, args = apps_and_args()
    port = 8000 + chosen.port_offset + 1
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        stage = stack.enter_context(staged(apps, chosen.port_offset, [ALIAS]))
        health = f"http://127.0.0.1:{port}/health"
        vllm = stack.enter_context(
            served(vllm_command(args, port), vllm_environment(stage), health)
        )
        loader = stack.enter_context(Loader())
        servers = [
            platform(stage, CHAT, ALIAS, f"{APP}:Generator"),
            Server("vLLM's server", port, CHAT, APP, (VLLM_GROUP,)),
        ]
        require_same_work(servers)
        bench = Bench(stage.meter({vllm: VLLM_GROUP}), loader)
        for streams in REQUESTS:
            for server in servers:
                bench.turn(job(server, streams, seed=0))
            turns = take_turns(
                servers,
                2 if chosen.quick else chosen.rounds,
                lambda server, seed: bench.turn(job(server, streams, seed)),  # noqa: B023  at once
            )
            show(streams, turns)
            found[f"{streams} streams"] = {s.name: [asdict(t) for t in e] for s, e in turns.items()}
    measure.write_json(chosen.json, about | {"cases": found})


if __name__ == "__main__":
    main()
