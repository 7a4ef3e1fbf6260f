"""Replicas that are told to leave, under streams: no stream is cut."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from modelyard.config.demo import OPS_KEY
from modelyard.lifecycle.phases import Phase

pytestmark = pytest.mark.integration

CONFIG = Path(__file__).parents[2] / "configs" / "local.serve.yaml"
GENERATOR = "smollm2-135m-instruct@1.0.0"
EMBEDDER = "all-minilm-l6-v2@1.0.0"
ROOM_FOR_ONE_MORE = {
    "min_replicas": 1,
    "max_replicas": 2,
    "target_ongoing_requests": 20,
    "metrics_interval_s": 1,
    "look_back_period_s": 3,
    "upscale_delay_s": 0,
    "downscale_delay_s": 5,
    "policy": {"policy_function": "cluster.scaling_policy:QueuedPlusOngoing"},
}
STORY = {
    "model": "support-assistant",
    "messages": [{"role": "user", "content": "Tell me a very long story about a dog."}],
    "max_tokens": 120,
    "ignore_eos": True,
    "stream": True,
}
EMBED = {"model": "support-embed", "input": "a text"}
CALLERS = 6
WHOLE, REFUSED = "whole", "refused"


def stream(client: httpx.Client) -> str:
    """One word for how a stream ended: `whole`, `refused` before it began, or how it was cut."""
    lines: list[str] = []
    try:
        with client.stream("POST", "/v1/chat/completions", json=STORY) as answer:
            if answer.status_code in (429, 503):
                return REFUSED
            if answer.status_code != 200:
                return f"status {answer.status_code}"
            lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    except httpx.TransportError as error:
        return f"cut: {error!r}"
    if lines[-1] != "data: [DONE]":
        return "ended without [DONE]"
    errors = [line for line in lines[:-1] if "error" in json.loads(line[6:])]
    return WHOLE if not errors else f"an error in it: {errors[0]}"


def embed(client: httpx.Client) -> str:
    try:
        status = client.post("/v1/embeddings", json=EMBED).status_code
    except httpx.TransportError as error:
        return f"cut: {error!r}"
    return WHOLE if status == 200 else REFUSED if status in (429, 503) else f"status {status}"


class Callers:
    """Streams and small requests, one after the other each, until stopped."""

    def __init__(self, platform: Any) -> None:
        self.platform = platform
        self.stop = threading.Event()
        self.streams: Counter[str] = Counter()
        self.embeddings: Counter[str] = Counter()

    def stories(self) -> None:
        with self.platform.client() as client:
            while not self.stop.is_set():
                self.streams[stream(client)] += 1

    def texts(self) -> None:
        with self.platform.client() as client:
            while not self.stop.wait(0.05):
                self.embeddings[embed(client)] += 1

    def require_none_cut(self) -> None:
        print(dict(self.streams), dict(self.embeddings))
        for seen in (self.streams, self.embeddings):
            assert set(seen) <= {WHOLE, REFUSED}, seen
            assert seen[WHOLE] > 0


@contextmanager
def callers(platform: Any, wait_for: Any) -> Iterator[Callers]:
    made = Callers(platform)
    with ThreadPoolExecutor(CALLERS + 1) as pool:
        running: list[Future[None]] = [pool.submit(made.stories) for _ in range(CALLERS)]
        running.append(pool.submit(made.texts))
        try:
            wait_for("streams", lambda: made.streams[WHOLE] >= CALLERS)
            yield made
        finally:
            made.stop.set()
    for one in running:
        one.result()


def as_operator(platform: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.setenv("MODELYARD_API_KEY", OPS_KEY)
    monkeypatch.setenv("MODELYARD_URL", platform.url)
    return platform.run("replicas", *arguments)


@pytest.mark.slow
def test_a_drained_replica_finishes_what_it_holds_and_another_starts(
    platform: Any, wait_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = platform.replica(GENERATOR).replica
    with callers(platform, wait_for) as seen:
        done = as_operator(platform, monkeypatch, "drain", old, "--reason", "a test", "-o", "json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"replica": old, "app": GENERATOR, "left": True}
        whole = seen.streams[WHOLE]
        wait_for("streams of the new replica", lambda: seen.streams[WHOLE] > whole + CALLERS)
    seen.require_none_cut()
    assert platform.replica(GENERATOR).replica != old
    listed = as_operator(platform, monkeypatch, "list", "-o", "json")
    serving = [one for one in json.loads(listed.stdout) if one["phase"] == Phase.READY]
    assert old not in {one["replica"] for one in serving}


def test_a_replacement_without_room_is_refused(
    platform: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shipped configuration has max_replicas 1."""
    old = platform.replica(GENERATOR).replica
    done = as_operator(platform, monkeypatch, "replace", old, "--reason", "a test")
    assert done.returncode == 1
    assert "no room for one more replica" in done.stderr
    assert platform.replica(GENERATOR).replica == old


def roomy_config() -> str:
    """The shipped configuration with one small model, of which there may be two."""
    record = yaml.safe_load(CONFIG.read_text())
    kept = [
        app for app in record["applications"] if app["name"] in ("ingress", "control", EMBEDDER)
    ]
    for app in kept:
        (deployment,) = app["deployments"]
        if app["name"] == EMBEDDER:
            del deployment["num_replicas"]
            deployment["autoscaling_config"] = ROOM_FOR_ONE_MORE
            deployment["ray_actor_options"] = {"num_cpus": 0.4}
        else:
            table = deployment["user_config"]
            routes = table["routes"].items()
            table["routes"] = {alias: r for alias, r in routes if r["stable"] == EMBEDDER}
            table.pop("quotas", None)  # the callers are to reach the replicas
    return str(yaml.safe_dump(record | {"applications": kept}, sort_keys=False))


@pytest.fixture
def roomy(start_platform: Any, tmp_path: Path) -> Iterator[Any]:
    with start_platform(tmp_path, 660, roomy_config()) as made:
        yield made


@pytest.mark.slow
def test_a_replaced_replica_leaves_when_another_is_ready_and_no_request_is_lost(
    roomy: Any, wait_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed() -> dict[str, Any]:
        done = as_operator(roomy, monkeypatch, "list", "-o", "json")
        assert done.returncode == 0, done.stderr
        return {one["replica"]: one for one in json.loads(done.stdout) if one["app"] == EMBEDDER}

    def ready() -> set[str]:
        return {name for name, one in listed().items() if one["ready"]}

    wait_for("the one replica", lambda: len(ready()) == 1)
    [old] = ready()
    seen = Callers(roomy)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(seen.texts)
        try:
            wait_for("requests", lambda: seen.embeddings[WHOLE] > 0)
            done = as_operator(
                roomy, monkeypatch, "replace", old, "--reason", "a test", "-o", "json"
            )
            assert done.returncode == 0, done.stdout + done.stderr
            new = json.loads(done.stdout)["new"]
            whole = seen.embeddings[WHOLE]
            wait_for("requests of the new one", lambda: seen.embeddings[WHOLE] > whole)
        finally:
            seen.stop.set()
    asking.result()
    assert set(seen.embeddings) == {WHOLE}, seen.embeddings
    assert new in ready()
    assert old not in listed()
    with roomy.client(OPS_KEY) as http:
        assert http.get("/admin/overrides").json()["overrides"] == []
    # Serve may have begun one more in the drained one's place; the bounds hold it to one again.
    wait_for("one replica again", lambda: len(ready()) == 1)


def test_a_tenants_key_drains_nothing(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELYARD_API_KEY", "my_demo-1_wrong")
    monkeypatch.setenv("MODELYARD_URL", platform.url)
    assert platform.run("replicas", "list").returncode == 1


@pytest.mark.slow
def test_generator_ingress_and_small_models_redeployed_together_cut_nothing(
    platform: Any, wait_for: Any
) -> None:
    record = yaml.safe_load(platform.config.read_text())
    for application in record["applications"]:
        for deployment in application["deployments"]:
            if application["name"] != "control":
                # Serve starts each replica anew where its resources change.
                deployment["ray_actor_options"]["num_cpus"] += 0.01
    changed = platform.home / "changed.serve.yaml"
    changed.write_text(yaml.safe_dump(record, sort_keys=False))
    old = platform.replica(GENERATOR).replica
    before = {process.pid for process in platform.ingresses()}
    with callers(platform, wait_for) as seen:
        done = platform.run(
            "up", "--config", str(changed), "--port-offset", str(platform.port_offset)
        )
        assert done.returncode == 0, done.stdout + done.stderr
        wait_for(
            "new ingresses", lambda: before.isdisjoint(one.pid for one in platform.ingresses())
        )
        time.sleep(5)  # of the new ones' work
    assert platform.replica(GENERATOR).replica != old
    seen.require_none_cut()
