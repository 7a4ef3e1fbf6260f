"""Embeddings per second over HTTP, one text a request, against infinity-emb.

    .venv/bin/python -m tests.benchmarks.embedder            about 5 minutes
    .venv/bin/python -m tests.benchmarks.embedder --quick    about 2

infinity-emb runs in an environment of its own (`requirements/side infinity` makes it), on the same
weights with the same number of torch threads: once in bf16, which is ours too, and once in its
default dtype. All servers are up at once and take turns.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from modelyard.artifacts.store import resolve
from modelyard.config.settings import Settings
from tests.benchmarks import measure
from tests.benchmarks.load import Loader
from tests.benchmarks.servers import Server, idle_percent, platform, served
from tests.benchmarks.stage import ROOT, App, local_apps, staged
from tests.benchmarks.turns import Bench, Turn, take_turns

APP: Final = "all-minilm-l6-v2@1.0.0"
ALIAS: Final = "support-embed"
CLIENTS: Final = (1, 8, 32, 64)
BAR_CLIENTS, BAR = 32, 1.5
TEXTS: Final = 128
SAME_COSINE: Final = 0.99
WARM_S: Final = 2.0


def text_of(number: int) -> str:
    """About 32 tokens."""
    return (
        f"Order {number} has not arrived and the tracking page shows nothing since last Tuesday, "
        "so please tell me where it is and when it will come."
    )


def body_of(server: Server, number: int) -> dict[str, Any]:
    return {"model": server.model, "input": text_of(number)}


def window(bench: Bench, clients: int, seconds: float, server: Server, seed: int) -> Turn:
    bodies = [json.dumps(body_of(server, number)) for number in range(TEXTS)]
    return bench.turn(server.job(bodies, clients, seed, seconds=seconds))


def vector(server: Server) -> list[float]:
    found: list[float] = server.ask(body_of(server, 0))["data"][0]["embedding"]
    return found


def require_same_vectors(servers: list[Server]) -> None:
    """Raises AssertionError unless all servers embed a text alike (the dtypes differ)."""
    ours = vector(servers[0])
    for server in servers[1:]:
        theirs = vector(server)
        dot = sum(a * b for a, b in zip(ours, theirs, strict=True))
        cosine = dot / math.hypot(*ours) / math.hypot(*theirs)
        print(f"cosine of our vector and that of {server.name}: {cosine:.5f}")
        assert cosine > SAME_COSINE, cosine


def infinity_command(python_folder: Path, folder: Path, port: int, *options: str) -> list[str]:
    command = [str(python_folder / "bin" / "infinity_emb"), "v2", "--model-id", str(folder)]
    command += ["--served-model-name", ALIAS, "--engine", "torch", "--device", "cpu"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
    # It needs the package optimum before version 2 for it, and torch's own attention is as fast.
    return [*command, "--no-bettertransformer", *options]


def infinity_environment(threads: int) -> dict[str, str]:
    return {
        "OMP_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
        "INFINITY_ANONYMOUS_USAGE_STATS": "0",
        "PYTHONPATH": "",  # its packages are its own
    }


def show(clients: int, turns: dict[Server, list[Turn]]) -> None:
    ours, *others = turns
    rows = []
    for server, each in turns.items():
        ratio = measure.paired_ratio(
            [turn.load.per_s for turn in turns[ours]], [turn.load.per_s for turn in each]
        )
        rows.append([
            server.name,
            measure.spread([turn.load.per_s for turn in each], 0),
            f"{median(turn.load.p50_ms for turn in each):.1f}",
            f"{median(turn.path_ms(server.groups) for turn in each):.2f}",
            f"{median(t.load.client_cpu_s / t.load.seconds for t in each):.0%}",
            idle_percent(server, turns),
            "" if server is ours else ratio,
        ])  # fmt: skip
    head = ["server", "texts/s", "p50 ms", "CPU ms/text", "client CPU", "CPU when idle"]
    measure.print_table(f"{clients} clients", [*head, "platform / it, texts/s"], rows)
    if clients == BAR_CLIENTS:
        ratio = measure.paired_ratio(
            [turn.load.per_s for turn in turns[ours]],
            [turn.load.per_s for turn in turns[others[0]]],
        )
        word = ratio.verdict(BAR, at_least=True)
        print(f"bar {BAR}: texts/s against {others[0].name} is {ratio}: {word}")


def apps_with(threads: int) -> list[App]:
    """The local config's embedder; torch takes as many threads as it is given whole CPUs."""
    apps = local_apps(APP)
    model = next(app for app in apps if app["name"] == APP)
    model["deployments"][0]["ray_actor_options"]["num_cpus"] = threads
    return apps


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2 short rounds: a smoke test")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=2.5, help="of one window")
    parser.add_argument("--threads", type=int, default=1, help="of torch, for every server")
    parser.add_argument("--port-offset", type=int, default=470)
    parser.add_argument("--infinity", type=Path, help="an environment that holds infinity-emb")
    parser.add_argument("--json", type=Path, help="write every window's figures here")
    chosen = parser.parse_args()
    rounds, seconds = (2, 1.0) if chosen.quick else (chosen.rounds, chosen.seconds)
    infinity = chosen.infinity or ROOT / ".venv-infinity"
    if chosen.infinity is None:
        subprocess.run([ROOT / "requirements" / "side", "infinity"], check=True)
    about = measure.machine() | {"torch_threads": chosen.threads}
    print(" · ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    apps, port = apps_with(chosen.threads), 8000 + chosen.port_offset
    artifact = next(app for app in apps if app["name"] == APP)["args"]["artifact"]
    folder = resolve(artifact, Settings.from_environment().home)
    pids: dict[int, str] = {}
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        stage = stack.enter_context(staged(apps, chosen.port_offset, [ALIAS]))
        servers = [platform(stage, "/v1/embeddings", ALIAS, f"{APP}:Embedder")]
        for number, (name, options) in enumerate(
            {"infinity bf16": ["--dtype", "bfloat16"], "infinity, its default dtype": []}.items(), 1
        ):
            command = infinity_command(infinity, folder, port + number, *options)
            url = f"http://127.0.0.1:{port + number}/health"
            pid = stack.enter_context(served(command, infinity_environment(chosen.threads), url))
            pids[pid] = name
            servers.append(Server(name, port + number, "/embeddings", ALIAS, (name,)))
        loader = stack.enter_context(Loader())
        require_same_vectors(servers)
        bench = Bench(stage.meter(pids), loader)
        for clients in CLIENTS:
            for server in servers:
                window(bench, clients, WARM_S, server, seed=0)
            turns = take_turns(servers, rounds, partial(window, bench, clients, seconds))
            show(clients, turns)
            found[f"{clients} clients"] = {s.name: [asdict(t) for t in e] for s, e in turns.items()}
    measure.write_json(chosen.json, about | {"cases": found})


if __name__ == "__main__":
    main()
