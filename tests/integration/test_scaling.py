"""Scaling on a real platform with cheap replicas: from 1 and from 0, up and down, nothing lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from cluster.local import LocalCluster
from cluster.ray_token import ray_token
from cluster.running import Running
from modelyard.config.settings import Settings

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CONFIG = Path(__file__).parents[2] / "configs" / "local.serve.yaml"
EMBEDDER = "all-minilm-l6-v2@1.0.0"
CLASSIFIER = "support-intent@1.0.0"
SCALING = {
    "max_replicas": 3,
    "target_ongoing_requests": 2,
    "metrics_interval_s": 1,
    "look_back_period_s": 3,
    "upscale_delay_s": 0,
    "downscale_delay_s": 5,
    "policy": {"policy_function": "cluster.scaling_policy:QueuedPlusOngoing"},
}
FROM = {
    EMBEDDER: {"min_replicas": 1},
    CLASSIFIER: {"min_replicas": 0, "downscale_to_zero_delay_s": 5},
}
TEXTS = ["my parcel has not come and nobody answers the phone " * 12] * 24
EMBED = ("/v1/embeddings", {"model": "support-embed", "input": TEXTS, "dimensions": 8})
CLASSIFY = ("/v1/classify", {"model": "support-intent", "input": TEXTS})
KILL_THE_BOARD = """
import sys
from pathlib import Path
import ray
from cluster.board import NAME, NAMESPACE
from cluster.local import LocalCluster
from cluster.observe import connected
from modelyard.config.settings import Settings
home = Path(sys.argv[1])
running = LocalCluster(Settings(home, home / "secret")).running()
with connected(running):
    ray.kill(ray.get_actor(NAME, namespace=NAMESPACE), no_restart=True)
"""


def config_text() -> str:
    """The shipped configuration with two models, which scale."""
    record = yaml.safe_load(CONFIG.read_text())
    kept = [app for app in record["applications"] if app["name"] in ("ingress", "control", *FROM)]
    for app in kept:
        (deployment,) = app["deployments"]
        if app["name"] in FROM:
            del deployment["num_replicas"]
            deployment["autoscaling_config"] = SCALING | FROM[app["name"]]
            deployment["ray_actor_options"] = {"num_cpus": 0.4}
        else:
            table = deployment["user_config"]
            routes = table["routes"].items()
            table["routes"] = {alias: r for alias, r in routes if r["stable"] in FROM}
            table.pop("quotas", None)  # the load is to reach the replicas
    return yaml.safe_dump(record | {"applications": kept}, sort_keys=False)


class Scaled:
    """A platform, and what Serve itself says of an app's replicas."""

    def __init__(self, platform: Any) -> None:
        self.platform = platform
        running = LocalCluster(Settings(platform.home, platform.home / "secret")).running()
        assert running is not None
        self._running: Running = running

    def target(self, app: str) -> int:
        return int(self._deployment(app)["target_num_replicas"])

    def counts(self, app: str) -> tuple[int, int]:
        """Serve's target, and the replicas that are running."""
        deployment = self._deployment(app)
        states = [replica["state"] for replica in deployment["replicas"]]
        return deployment["target_num_replicas"], states.count("RUNNING")

    def gone(self, app: str) -> bool:
        return not self._deployment(app)["replicas"]

    def status(self, app: str) -> dict[str, Any]:
        """The app in `modelyard status -o json`."""
        views = json.loads(self.platform.run("status", "-o", "json").stdout)["apps"]
        (view,) = [view for view in views if view["name"] == app]
        return dict(view)

    def _deployment(self, app: str) -> dict[str, Any]:
        answer = httpx.get(
            f"{self._running.dashboard_url}/api/serve/applications/",
            headers={"Authorization": f"Bearer {ray_token()}"},
            timeout=30.0,
        )
        (deployment,) = answer.json()["applications"][app]["deployments"].values()
        return dict(deployment)


class Load:
    """Clients that ask without a pause and keep every answer."""

    def __init__(self, platform: Any, request: tuple[str, dict[str, Any]]) -> None:
        self._platform = platform
        self._request = request
        self._stops: list[threading.Event] = []
        self._pool = ThreadPoolExecutor(16)
        self.answers: list[httpx.Response] = []

    def clients(self, count: int) -> None:
        """Add clients, or let some leave once they have their answer."""
        while len(self._stops) > count:
            self._stops.pop().set()
        while len(self._stops) < count:
            stop = threading.Event()
            self._stops.append(stop)
            self._done = self._pool.submit(self._ask, stop)

    def end(self) -> None:
        self.clients(0)
        self._pool.shutdown()

    def _ask(self, stop: threading.Event) -> None:
        path, body = self._request
        with self._platform.client() as client:
            while not stop.is_set():
                self.answers.append(client.post(path, json=body))


@contextmanager
def load(platform: Any, request: tuple[str, dict[str, Any]]) -> Iterator[Load]:
    made = Load(platform, request)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def scaled(start_platform: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scaled]:
    with start_platform(tmp_path_factory.mktemp("scaled"), 580, config_text()) as made:
        yield Scaled(made)


def statuses(answers: list[httpx.Response]) -> set[int]:
    return {answer.status_code for answer in answers}


def require_typed(answer: httpx.Response) -> None:
    """200, or a 503 that says when to come back."""
    if answer.status_code != 200:
        assert answer.status_code == 503, answer.text
        assert answer.json()["error"]["modelyard_code"] == "overloaded"
        assert 1 <= int(answer.headers["retry-after"]) <= 120
        assert answer.headers["x-should-retry"] == "true"


def test_a_step_of_load_adds_replicas_and_its_end_takes_them_away(
    scaled: Scaled, wait_for: Any
) -> None:
    wait_for("one embedder", lambda: scaled.counts(EMBEDDER) == (1, 1))
    with load(scaled.platform, EMBED) as made:
        made.clients(12)
        wait_for("three embedders", lambda: scaled.counts(EMBEDDER) == (3, 3))
        view = scaled.status(EMBEDDER)
        assert (view["ready"], view["desired"]) == (3, 3)
        assert "ongoing / 2, at most max_replicas 3" in view["why"]
        # Two go on, so that requests are under way, and more are sent, while two replicas leave.
        made.clients(2)
        wait_for("one embedder again", lambda: scaled.counts(EMBEDDER) == (1, 1))
        before = len(made.answers)
        wait_for("answers of the one that stays", lambda: len(made.answers) > before + 10)
    assert statuses(made.answers) == {200}


def test_no_replica_leaves_when_the_board_is_lost_under_load(scaled: Scaled, wait_for: Any) -> None:
    with load(scaled.platform, EMBED) as made:
        made.clients(12)
        wait_for("three embedders", lambda: scaled.counts(EMBEDDER) == (3, 3))
        kill = [sys.executable, "-c", KILL_THE_BOARD, str(scaled.platform.home)]
        subprocess.run(kill, check=True, timeout=120)
        before = len(made.answers)
        wait_for("answers without the board", lambda: len(made.answers) > before + 20)
        assert scaled.target(EMBEDDER) == 3
        made.clients(0)
        # Its successor is read: the policy lets replicas go again.
        wait_for("one embedder again", lambda: scaled.counts(EMBEDDER) == (1, 1))
    assert statuses(made.answers) == {200}


def test_from_zero_a_caller_is_told_when_to_come_back_and_then_answered(
    scaled: Scaled, wait_for: Any
) -> None:
    wait_for("no classifier", lambda: scaled.gone(CLASSIFIER))
    path, body = CLASSIFY
    with scaled.platform.client() as client:
        first = client.post(path, json=body)
        assert first.status_code == 503
        assert first.json()["error"]["reason"] == "not_loaded"
        require_typed(first)
        wait_for("a wish come true", lambda: scaled.target(CLASSIFIER) == 1)

        def answered() -> bool:
            answer = client.post(path, json=body)
            require_typed(answer)
            return bool(answer.status_code == 200)

        wait_for("an answer", answered)


def test_a_step_from_zero_comes_up_and_goes_to_zero_again(scaled: Scaled, wait_for: Any) -> None:
    with load(scaled.platform, CLASSIFY) as made:
        made.clients(12)
        wait_for("three classifiers", lambda: scaled.counts(CLASSIFIER) == (3, 3))
    for answer in made.answers:
        require_typed(answer)
    wait_for("the target of zero", lambda: scaled.target(CLASSIFIER) == 0)
    # The last replica may still be listed here and there: whoever asks now is answered or told.
    path, body = CLASSIFY
    with scaled.platform.client() as client:
        for _ in range(20):
            require_typed(client.post(path, json=body))
            time.sleep(0.2)
