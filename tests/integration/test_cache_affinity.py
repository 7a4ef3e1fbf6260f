"""Affinity, as the engines' own prefix caches see it: two replicas of the generator."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from modelyard.config.demo import OPS_KEY

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CONFIG = Path(__file__).parents[2] / "configs" / "local.serve.yaml"
# Joins once: a `modelyard status` a look would take longer than the requests do.
WATCH = """
import json, sys, time
from pathlib import Path
from cluster.board import Board
from cluster.local import LocalCluster
from cluster.observe import connected, read_apps
from modelyard.config.settings import Settings
home = Path(sys.argv[1])
running = LocalCluster(Settings(home, home / "secret")).running()
with connected(running):
    board = Board()
    while True:
        (app,) = [one for one in read_apps(board) if one.name == sys.argv[2]]
        print(json.dumps([one.ongoing for one in app.replicas]), flush=True)
        time.sleep(0.5)
"""
GENERATOR = "smollm2-135m-instruct@1.0.0"
REPLICAS = 2
PROMPTS = 40
# Over the 128 or so tokens from which a system prompt is a key of its own, and its 4 blocks of 32.
RULES = "Answer in one short sentence. Never promise a refund before the parcel was traced. " * 10
# Below it: without X-Conversation-Id such a completion has no key.
TICKET = "The customer writes that the parcel has not arrived and asks for help. " * 6


def config_text() -> str:
    """The shipped configuration with nothing but the generator, twice, and patient deadlines."""
    record = yaml.safe_load(CONFIG.read_text())
    kept = [
        app for app in record["applications"] if app["name"] in ("ingress", "control", GENERATOR)
    ]
    for app in kept:
        (deployment,) = app["deployments"]
        if app["name"] == GENERATOR:
            del deployment["autoscaling_config"]
            deployment["num_replicas"] = REPLICAS
            deployment["graceful_shutdown_timeout_s"] = 300
            deployment["ray_actor_options"] = {"num_cpus": 0.4}
            continue
        deployment["graceful_shutdown_timeout_s"] = 300
        if app["name"] == "control":
            continue
        table = deployment["user_config"]
        route = table["routes"]["support-assistant"]
        route["deadlines"] = {"first_token_s": 200, "idle_s": 200, "total_s": 280}
        table["routes"] = {"support-assistant": route}
        for tenant in table["tenants"].values():
            tenant["models"] = ["*"]
        table.pop("quotas", None)  # what is measured is not how much a tenant may ask
    return yaml.safe_dump(record | {"applications": kept}, sort_keys=False)


@pytest.fixture(scope="module")
def twice(start_platform: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with start_platform(tmp_path_factory.mktemp("twice"), 560, config_text()) as made:
        yield made


def cached_tokens(answer: httpx.Response) -> int:
    assert answer.status_code == 200, answer.text
    details = answer.json()["usage"].get("prompt_tokens_details") or {}
    return int(details.get("cached_tokens") or 0)


def complete(client: httpx.Client, prompt: str, conversation: str | None) -> int:
    """The tokens of a completion's prompt that the replica had cached."""
    body = {"model": "support-assistant", "prompt": prompt, "max_tokens": 1}
    headers = {"X-Conversation-Id": conversation} if conversation else {}
    return cached_tokens(client.post("/v1/completions", json=body, headers=headers))


def second_time_hits(client: httpx.Client, name: str, *, keyed: bool) -> int:
    """How many of PROMPTS prompts, each asked twice, met their cache the second time."""
    prompts = [f"{name} ticket {n}. {TICKET}" for n in range(PROMPTS)]
    keys = [f"{name}-{n}" if keyed else None for n in range(PROMPTS)]
    for prompt, key in zip(prompts, keys, strict=True):
        assert complete(client, prompt, key) == 0
    again = [complete(client, prompt, key) for prompt, key in zip(prompts, keys, strict=True)]
    return sum(tokens > 0 for tokens in again)


def test_with_a_key_the_cache_is_met_and_without_one_half_of_the_time(twice: Any) -> None:
    with twice.client() as client:
        keyed = second_time_hits(client, "keyed", keyed=True)
        blind = second_time_hits(client, "blind", keyed=False)
    print(f"met their cache the second time, of {PROMPTS}: keyed {keyed}, without key {blind}")
    assert keyed >= 0.9 * PROMPTS
    # Of two replicas; four standard deviations to each side.
    assert 7 <= blind <= 33


def test_what_shares_a_system_prompt_shares_a_cache(twice: Any) -> None:
    """Different conversations, all of them new: their rules are on one replica."""
    tokens = []
    with twice.client() as client:
        for shop in range(6):
            for customer in range(4):
                messages = [
                    {"role": "system", "content": f"Shop {shop}. {RULES}"},
                    {"role": "user", "content": f"I am customer {customer} of shop {shop}. Help!"},
                ]
                body = {"model": "support-assistant", "messages": messages, "max_tokens": 1}
                answer = client.post("/v1/chat/completions", json=body)
                if customer > 0:
                    tokens.append(cached_tokens(answer))
    assert sum(found >= 128 for found in tokens) >= 0.9 * len(tokens), tokens


def test_a_hot_key_spills_to_the_other_replica(twice: Any) -> None:
    """Each replica takes 40, so that one of them alone could hold all 36."""
    body = {
        "model": "support-assistant",
        "prompt": "Write a very long story. " + TICKET,
        "max_tokens": 400,
        "min_tokens": 400,
    }
    headers = {"X-Conversation-Id": "hot"}

    def ask(_: int) -> int:
        with twice.client() as client:
            answer = client.post("/v1/completions", json=body, headers=headers, timeout=280)
        return int(answer.status_code)

    with subprocess.Popen(
        [sys.executable, "-c", WATCH, str(twice.home), GENERATOR],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as watcher:
        assert watcher.stdout is not None
        try:
            assert json.loads(watcher.stdout.readline()) == [0, 0]  # joined: it looks from here on
            with ThreadPoolExecutor(36) as pool:
                statuses = set(pool.map(ask, range(36)))
        finally:
            watcher.terminate()
        seen = [json.loads(line) for line in watcher.stdout.read().splitlines()]
    print("ongoing by replica, at each look:", seen)
    assert statuses == {200}
    assert max(min(counts) for counts in seen if len(counts) == REPLICAS) > 0


def test_an_operator_is_told_where_a_conversation_goes(twice: Any) -> None:
    headers = {"Authorization": f"Bearer {OPS_KEY}"}
    asked = {"tenant": "demo", "model": "support-assistant", "conversation": "c-1"}
    with httpx.Client(base_url=twice.url, headers=headers, timeout=60) as client:
        answers = [client.get("/admin/route", params=asked) for _ in range(6)]
    assert {answer.status_code for answer in answers} == {200}
    replicas = {answer.json()["steps"][-1]["facts"]["replica"] for answer in answers}
    assert len(replicas) == 1  # whichever ingress was asked
    assert None not in replicas
