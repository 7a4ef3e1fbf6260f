"""Two ingress replicas that act as one: a quota holds over both, however connections are spread.

Each ingress listens on a port of its own behind HAProxy, so a test can skew what goes where.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from modelyard.config.demo import OPS_KEY
from tests.integration.ingress_port import port_of

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
BURST = 300  # output tokens of `metered`, in tests/integration/conftest.py
PER_S = 50.0
MAX_ACTIVE = 4


def body(tokens: int, **changes: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Tell me a long story about a dog."}]
    made = {"model": "support-assistant", "messages": messages, "max_tokens": tokens}
    return made | {"ignore_eos": True} | changes


@contextmanager
def clients_of(platform: Any, key: str) -> Iterator[list[httpx.Client]]:
    """A client of each ingress."""
    headers = {"Authorization": f"Bearer {key}"}
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                httpx.Client(
                    base_url=f"http://127.0.0.1:{port_of(one)}", headers=headers, timeout=60.0
                )
            )
            for one in platform.ingresses()
        ]


@pytest.fixture
def metered(platform: Any, test_keys: dict[str, str]) -> Iterator[list[httpx.Client]]:
    """A client of each ingress, with the key of `metered`, which has no bound on what runs."""
    with clients_of(platform, test_keys["metered"]) as clients:
        yield clients


def full_again(metered: list[httpx.Client], wait_for: Any) -> None:
    """Wait until the whole burst can be had at one ingress: what the others hold is called back."""

    def admitted() -> bool:
        answer = metered[0].post(CHAT, json=body(1, max_completion_tokens=1, max_tokens=BURST))
        return answer.status_code == 200

    wait_for("the whole burst at one ingress", admitted)


def test_a_burst_at_one_ingress_is_the_tenants_whole_burst(
    metered: list[httpx.Client], wait_for: Any
) -> None:
    assert len(metered) == 2
    full_again(metered, wait_for)


def ask_at_once(
    clients: list[httpx.Client], skew: tuple[int, int], tokens: int
) -> list[httpx.Response]:
    calls = [client for client, count in zip(clients, skew, strict=True) for _ in range(count)]
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda client: client.post(CHAT, json=body(tokens)), calls))


@pytest.mark.parametrize("skew", [(12, 0), (9, 3), (6, 6)])
def test_both_ingresses_together_never_exceed_the_quota(
    metered: list[httpx.Client], wait_for: Any, skew: tuple[int, int]
) -> None:
    """Twelve times 100 tokens are reserved at once, four times the burst, and all of them made."""
    full_again(metered, wait_for)
    began = time.monotonic()
    answers = ask_at_once(metered, skew, 100)
    took_s = time.monotonic() - began
    served = [answer for answer in answers if answer.status_code == 200]
    refused = [answer for answer in answers if answer.status_code != 200]
    assert served
    assert refused
    tokens = sum(answer.json()["usage"]["completion_tokens"] for answer in served)
    assert tokens <= BURST + PER_S * took_s
    for answer in refused:
        assert answer.status_code == 429
        error = answer.json()["error"]
        assert (error["code"], error["reason"]) == ("rate_limit_exceeded", "quota_output")
        assert 1 <= int(answer.headers["retry-after"]) <= 120
        assert answer.headers["x-should-retry"] == "true"
        assert answer.headers["x-ratelimit-limit-output-tokens"] == "3000"


def test_both_ingresses_together_run_no_more_at_once_than_is_allowed(
    platform: Any, test_keys: dict[str, str], wait_for: Any
) -> None:
    with clients_of(platform, test_keys["capped"]) as clients:
        answers = ask_at_once(clients, (8, 8), 200)
        served = [answer for answer in answers if answer.status_code == 200]
        # Sixteen leave at once and each takes seconds: a permit comes back for few of them.
        assert 1 <= len(served) < 2 * MAX_ACTIVE
        reasons = {a.json()["error"]["reason"] for a in answers if a.status_code != 200}
        assert reasons == {"quota_sequences"}
        wait_for(
            "every permit",
            lambda: all(one.status_code == 200 for one in ask_at_once(clients, (2, 2), 5)),
        )


def test_what_no_bucket_can_hold_is_refused_for_good(metered: list[httpx.Client]) -> None:
    answer = metered[0].post(CHAT, json=body(BURST + 1))
    assert answer.status_code == 400
    assert answer.json()["error"]["reason"] == "request_exceeds_burst"
    assert answer.headers["x-should-retry"] == "false"


def test_an_answer_says_what_is_left(metered: list[httpx.Client], wait_for: Any) -> None:
    def answered() -> httpx.Response | None:
        answer = metered[0].post(CHAT, json=body(5))
        return answer if answer.status_code == 200 else None

    answer = wait_for("an answer", answered)
    assert answer.headers["x-ratelimit-limit-input-tokens"] == "60000"
    assert 0 <= int(answer.headers["x-ratelimit-remaining-output-tokens"]) <= BURST
    assert answer.headers["x-ratelimit-reset-tokens"].endswith("s")


def test_small_models_are_metered_apart(metered: list[httpx.Client]) -> None:
    asked = {"model": "support-embed", "input": "where is my parcel?"}
    answer = metered[1].post("/v1/embeddings", json=asked)
    assert answer.status_code == 200
    assert answer.headers["x-ratelimit-limit-input-tokens"] == "60000"
    too_long = {"model": "support-embed", "input": [[101] + [2000] * 200 + [102]] * 11}
    answer = metered[1].post("/v1/embeddings", json=too_long)
    assert answer.status_code == 400
    assert answer.json()["error"]["reason"] == "request_exceeds_burst"


def test_a_stream_that_is_left_gives_back_what_it_did_not_use(
    platform: Any, metered: list[httpx.Client], wait_for: Any
) -> None:
    full_again(metered, wait_for)
    headers = {"X-Request-Id": "metered-and-left"}

    def left() -> bool:
        asked = body(BURST - 20, stream=True)
        with metered[0].stream("POST", CHAT, json=asked, headers=headers) as answer:
            if answer.status_code == 200:
                next(answer.iter_lines())
            return answer.status_code == 200

    wait_for("a stream", left)
    lines = wait_for(
        "its line",
        lambda: [one for one in platform.log_of("metered-and-left") if one.get("ttft_ms")],
    )
    assert lines[-1]["reserved_tokens"] > BURST - 20
    assert lines[-1]["settled_tokens"] < BURST - 20


def test_shadow_mode_counts_and_refuses_nothing(platform: Any, test_keys: dict[str, str]) -> None:
    with platform.client(test_keys["shadowed"]) as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.post(CHAT, json=body(100)), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    with platform.client(OPS_KEY) as ops:
        text = ops.get("/metrics").text
    lines = [line for line in text.splitlines() if "would_refuse" in line and "{" in line]
    assert sum(float(line.split()[-1]) for line in lines) > 0


def test_a_tenant_of_another_region_is_refused(platform: Any, test_keys: dict[str, str]) -> None:
    with platform.client(test_keys["abroad"]) as client:
        answer = client.post(CHAT, json=body(5))
        assert answer.status_code == 403
        assert answer.json()["error"]["reason"] == "residency"


def test_every_request_is_in_the_log_of_the_ingress_that_had_it(
    platform: Any, metered: list[httpx.Client], wait_for: Any
) -> None:
    for number, client in enumerate(metered):
        client.get("/v1/models")
        client.post(CHAT, json=body(BURST + 1), headers={"X-Request-Id": f"at-ingress-{number}"})

    def files() -> set[str]:
        return {
            path.name
            for path in (platform.home / "logs").glob("requests-*.jsonl")
            for line in path.read_text().splitlines()
            if json.loads(line)["request_id"].startswith("at-ingress-")
        }

    wait_for("a line at each ingress", lambda: len(files()) == len(metered))
