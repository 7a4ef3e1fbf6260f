"""What the platform costs: CPU per request of the whole path over an engine that costs nothing.

    .venv/bin/python -m tests.benchmarks.gateway            about 6 minutes
    .venv/bin/python -m tests.benchmarks.gateway --quick    about 2

It starts a cluster of its own and stops it. Targets take turns, round by round: the platform (keys,
routing, validation, deadlines, log), a bare two-hop Serve app in the same cluster behind the same
HAProxy, and one uvicorn process with the engine inside; each does the same work. CPU is what the
processes of a target's path used, over the requests answered. The client's own is not in it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from tests.benchmarks import instant, measure
from tests.benchmarks.gateway_apps import (
    BARE,
    FLOOR,
    PLATFORM,
    REPLICAS,
    TENANTS,
    Target,
    applications,
)
from tests.benchmarks.instant import Script
from tests.benchmarks.load import Job, Loader
from tests.benchmarks.stage import staged, wait
from tests.benchmarks.turns import Bench, Turn, take_turns

WARM_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """One load; every target's ratio is to the baseline's window of the same round."""

    title: str
    script: Script
    clients: int
    stream: bool
    targets: tuple[Target, ...] = (PLATFORM, BARE, FLOOR)
    baseline: Target = BARE
    bars: tuple[tuple[Target, float], ...] = ()

    @property
    def items(self) -> int:
        return self.script.items if self.stream else 1


ONCE, BURST, PACED = Script(16, 0), Script(32, 0), Script(32, 20)
CASES: Final = (
    Case("unary, 1 client", ONCE, 1, False, bars=((PLATFORM, 1.5),)),
    Case("unary, 16 clients", ONCE, 16, False, bars=((PLATFORM, 1.5),)),
    Case("stream of 32 items at once, 1 client", BURST, 1, True),
    Case("stream of 32 items at once, 16 clients", BURST, 16, True),
    Case("stream of 32 items, 20 ms apart, 16 clients", PACED, 16, True, bars=((PLATFORM, 1.3),)),
    Case(
        "unary, 16 clients, as the platform grows",
        ONCE,
        16,
        False,
        targets=(PLATFORM, TENANTS, REPLICAS),
        baseline=PLATFORM,
        bars=((TENANTS, 1.1), (REPLICAS, 1.1)),
    ),
)


def measure_all(
    bench: Bench, cases: Sequence[Case], ports: dict[bool, int], rounds: int, seconds: float
) -> dict[Case, dict[Target, list[Turn]]]:
    """ports: of the floor (True) and of HAProxy (False)."""

    def run(case: Case, window_s: float, target: Target, seed: int) -> Turn:
        job = Job(
            port=ports[target is FLOOR],
            path=target.stream if case.stream else target.unary,
            bodies=[case.script.body(stream=case.stream)],
            headers=target.headers(),
            clients=case.clients,
            seconds=window_s,
            seed=seed,
        )
        return bench.turn(job)

    turns: dict[Case, dict[Target, list[Turn]]] = {}
    for case in cases:
        for target in case.targets:
            run(case, WARM_S, target, 0)
        turns[case] = take_turns(case.targets, rounds, partial(run, case, seconds))
        show(case, turns[case])
    return turns


def show(case: Case, turns: dict[Target, list[Turn]]) -> None:
    base = [turn.path_ms(case.baseline.groups) for turn in turns[case.baseline]]
    head = ["target", "CPU ms/request", "us/item", "of which HAProxy + front + model", "rest"]
    head += ["requests/s", "p50 ms", "client CPU", f"ratio to {case.baseline.name}"]
    rows = []
    for target, each in turns.items():
        path = [turn.path_ms(target.groups) for turn in each]
        parts = [median(turn.cpu_ms[group] for turn in each) for group in target.groups]
        rows.append([
            target.name,
            measure.spread(path),
            f"{1000 * median(path) / case.items:.0f}",
            " + ".join(f"{part:.2f}" for part in parts),
            f"{median(turn.cpu_ms['rest'] for turn in each):.2f}",
            f"{median(turn.load.per_s for turn in each):.0f}",
            f"{median(turn.load.p50_ms for turn in each):.2f}",
            f"{median(t.load.client_cpu_s / t.load.seconds for t in each):.0%}",
            measure.paired_ratio(path, base),
        ])  # fmt: skip
    measure.print_table(case.title, head, rows)
    for target, bar in case.bars:
        ratio = measure.paired_ratio([turn.path_ms(target.groups) for turn in turns[target]], base)
        print(f"bar {bar}: {target.name} is {ratio}: {ratio.verdict(bar)}")


@contextmanager
def bare_uvicorn(port: int) -> Iterator[tuple[int, int]]:
    """The floor's process: its port and pid."""
    command = [sys.executable, "-m", "tests.benchmarks.bare", str(port)]
    with subprocess.Popen(command) as process:
        try:
            wait("the bare uvicorn app listens", lambda: listens(process.pid))
            yield port, process.pid
        finally:
            process.terminate()


def listens(pid: int) -> bool:
    return any(c.status == "LISTEN" for c in psutil.Process(pid).net_connections())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2 short rounds: a smoke test")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.5, help="of one window")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose title holds it")
    parser.add_argument("--port-offset", type=int, default=470)
    parser.add_argument("--json", type=Path, help="write every window's figures here")
    chosen = parser.parse_args()
    rounds, seconds = (2, 1.0) if chosen.quick else (chosen.rounds, chosen.seconds)
    about = measure.machine()
    print(" · ".join(f"{key} {value}" for key, value in about.items()))
    with (
        tempfile.TemporaryDirectory(prefix="modelyard-bench-") as folder,
        staged(applications(Path(folder)), chosen.port_offset, [instant.NAME]) as stage,
        bare_uvicorn(8000 + chosen.port_offset + 1) as floor,
        Loader() as loader,
    ):
        bench = Bench(stage.meter({floor[1]: "floor"}), loader)
        idle = bench.idle_percent()
        print(f"percent of a core while idle: {idle}")
        cases = [case for case in CASES if chosen.only in case.title]
        ports = {False: stage.port, True: floor[0]}
        turns = measure_all(bench, cases, ports, rounds, seconds)
    found = {
        case.title: {target.name: [asdict(turn) for turn in each] for target, each in by.items()}
        for case, by in turns.items()
    }
    measure.write_json(chosen.json, about | {"idle_percent": idle, "cases": found})


if __name__ == "__main__":
    main()
