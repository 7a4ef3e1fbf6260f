"""What clients see when a process of the platform is killed with -9 under load.

docs/contract.md holds the table that these tests print and hold to; set MODELYARD_KILLS_TABLE to a
path to have it written there.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from cluster.running import run_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

GENERATOR = "smollm2-135m-instruct@1.0.0"
LONG = {
    "model": "support-assistant",
    "messages": [{"role": "user", "content": "Tell me a very long story about a dog."}],
    "max_tokens": 300,
    "ignore_eos": True,
}
EMBED = {"model": "support-embed", "input": "a text"}
CALLERS = 4
TITLES = {
    "generator": f"ray::ServeReplica:{GENERATOR}:Generator",
    "ingress": "ray::ServeReplica:ingress:Ingress",
    "controller": "ray::ServeController",
    "haproxy": "haproxy",
}
CUT = "connection cut"
NONE_LEFT = "nobody answers"  # no connection, or HAProxy's own text


def unary(client: httpx.Client, body: dict[str, Any], path: str = "/v1/chat/completions") -> str:
    """One word for how a unary request ended."""
    try:
        answer = client.post(path, json=body)
    except httpx.ConnectError:
        return NONE_LEFT
    except httpx.TransportError:
        return CUT
    return ended(answer)


def ended(answer: httpx.Response) -> str:
    if answer.status_code == 200:
        return "200"
    try:
        error = answer.json()["error"]
    except ValueError:
        return NONE_LEFT
    assert error["retryable"] == (answer.headers["x-should-retry"] == "true")
    return f"{answer.status_code} {error['reason']}"


def stream(client: httpx.Client, begun: threading.Semaphore) -> str:
    """One word for how a stream ended that was in the middle at the kill."""
    lines: list[str] = []
    try:
        with client.stream("POST", "/v1/chat/completions", json=LONG | {"stream": True}) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    lines.append(line)
                if len(lines) == 2:
                    begun.release()
    except httpx.TransportError:
        error = json.loads(lines[-1][6:]).get("error") if lines else None
        return f"error event {error['reason']}, then cut" if error else CUT
    return "200" if lines[-1] == "data: [DONE]" else "ended without [DONE]"


def victim_of(platform: Any, name: str) -> psutil.Process:
    """The process of this platform that carries a title; the newest, when one is going."""
    state = json.loads((platform.home / "run" / "local.json").read_text())
    found = [
        process
        for process in run_of(state["run_id"], state["pid"]).processes()
        if carries(process, TITLES[name])
    ]
    return max(found, key=lambda process: process.create_time())


def carries(process: psutil.Process, title: str) -> bool:
    try:
        return title in (process.name(), *process.cmdline()[:1])
    except psutil.NoSuchProcess:  # it ended while we looked
        return False


class Probe:
    """Asks a quick model over and over: what callers see who come after the kill."""

    def __init__(self, platform: Any) -> None:
        self.seen: Counter[str] = Counter()
        self._platform = platform
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._ask)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _ask(self) -> None:
        with self._platform.client() as client:
            while not self._stop.is_set():
                self.seen[unary(client, EMBED, "/v1/embeddings")] += 1
                time.sleep(0.05)


def killed(platform: Any, wait_for: Any, name: str) -> dict[str, Counter[str]]:
    """Kill a process under load. Returns how the unary, streamed and later requests ended."""
    begun = threading.Semaphore(0)
    probe = Probe(platform)
    with platform.client() as client, ThreadPoolExecutor(2 * CALLERS) as pool, probe.running():
        streams = [pool.submit(stream, client, begun) for _ in range(CALLERS)]
        unaries = [pool.submit(unary, client, LONG) for _ in range(CALLERS)]
        for _ in range(CALLERS):
            assert begun.acquire(timeout=120), "a stream never began"
        wait_for(
            "every request in the engine",
            lambda: platform.replica(GENERATOR).ongoing == 2 * CALLERS,
        )
        old = victim_of(platform, name)
        old.kill()
        wait_for(f"a new {name}", lambda: replaced(platform, name, old))
        seen = {
            "stream under way": Counter(job.result() for job in streams),
            "unary under way": Counter(job.result() for job in unaries),
        }
        wait_for("an answer", lambda: unary(client, LONG | {"max_tokens": 1}) == "200")
        wait_for("an embedding", lambda: unary(client, EMBED, "/v1/embeddings") == "200")
    note(name, seen | {"later": probe.seen})
    wait_for("an idle generator", lambda: platform.replica(GENERATOR).ongoing == 0)
    return seen | {"later": probe.seen}


def replaced(platform: Any, name: str, old: psutil.Process) -> bool:
    try:
        # Not by pid alone: there are two ingresses, and the other one was there before.
        return victim_of(platform, name).create_time() > old.create_time()
    except ValueError:  # of max: there is none yet
        return False


def note(name: str, seen: dict[str, Counter[str]]) -> None:
    rows = [f"{name} | {when} | {dict(counts)}\n" for when, counts in seen.items()]
    print("".join(rows))
    if path := os.environ.get("MODELYARD_KILLS_TABLE"):
        with Path(path).open("a") as table:
            table.writelines(rows)


def test_a_killed_generator_breaks_its_streams_and_its_unary_requests_are_sent_again(
    platform: Any, wait_for: Any
) -> None:
    seen = killed(platform, wait_for, "generator")
    assert set(seen["stream under way"]) == {"error event replica_died, then cut"}
    # The only replica: the second attempt waits for the next one as long as the total deadline.
    late = {"504 total", "503 not_loaded", "502 replica_died"}
    assert set(seen["unary under way"]) <= {"200"} | late
    assert set(seen["later"]) == {"200"}, "the embedder has nothing to do with it"


def test_a_killed_ingress_cuts_what_it_carried_and_leaves_no_orphan_in_the_engine(
    platform: Any, wait_for: Any
) -> None:
    seen = killed(platform, wait_for, "ingress")
    # The other ingress carries its share to the end.
    assert set(seen["stream under way"]) <= {CUT, "200"}, "never a clean end that is not whole"
    assert set(seen["unary under way"]) <= {CUT, NONE_LEFT, "200"}
    assert CUT in seen["stream under way"] + seen["unary under way"]
    assert set(seen["later"]) <= {"200", CUT, NONE_LEFT}


def test_a_killed_haproxy_cuts_every_connection_and_leaves_no_orphan_in_the_engine(
    platform: Any, wait_for: Any
) -> None:
    seen = killed(platform, wait_for, "haproxy")
    assert set(seen["stream under way"]) == {CUT}, "never a clean end"
    assert set(seen["unary under way"]) <= {CUT, NONE_LEFT}
    assert set(seen["later"]) <= {"200", CUT, NONE_LEFT}


def test_nobody_notices_a_killed_controller(platform: Any, wait_for: Any) -> None:
    generator = platform.replica(GENERATOR).pid
    seen = killed(platform, wait_for, "controller")
    assert platform.replica(GENERATOR).pid == generator, "it is taken over, not replaced"
    assert {word for counts in seen.values() for word in counts} == {"200"}
