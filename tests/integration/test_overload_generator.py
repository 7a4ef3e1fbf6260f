"""130 % of what the real generator can do on this machine, through HAProxy: goodput, reported.

Its two cores serve the engine, the ingresses and the clients, so this says less of the queue than
test_overload.py does, and more of what becomes of a model that shares them.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from modelyard.config.demo import DEMO_KEY
from tests.integration.offered_load import Run, offer, refusals, workload
from tests.integration.overload_report import (
    Goodput,
    mean_wait_s,
    quantiles,
    read_log,
    retry_afters,
    saturation,
    show,
)

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PORT_OFFSET: Final = 640
CONFIG: Final = Path(__file__).parents[2] / "configs" / "local.serve.yaml"
KEYS: Final = {"demo": DEMO_KEY}
SLOTS: Final = 40  # max_ongoing_requests in that file
OVER: Final = 1.3
OVER_S, RISE_S = 120.0, 20.0
WARMING, WARM_USERS = 80, 20
SATURATING, USERS = 400, 60
TIMES_MEAN: Final = 5.0  # a caller's deadline over the mean time that a slot is held, as there


def streams(deadline_ms: int | None) -> list[dict[str, Any]]:
    return [
        {
            "name": "streams" if streamed else "unary",
            "route": "chat",
            "model": "support-assistant",
            "tenant": "demo",
            "stream": streamed,
            "input_tokens": {"fixed": 32},
            "output_tokens": {"lognormal": {"median": 12, "sigma": 0.7, "max": 64}},
            "deadline_ms": deadline_ms,
            "extra_body": {"ignore_eos": True},
        }
        for streamed in (False, True)
    ]


@pytest.fixture(scope="module")
def unmetered(start_platform: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The shipped configuration, in which nothing but the queue refuses anybody."""
    record = yaml.safe_load(CONFIG.read_text())
    record["applications"][0]["deployments"][0]["user_config"]["quotas"] = {}
    text = str(yaml.safe_dump(record, sort_keys=False))
    with start_platform(tmp_path_factory.mktemp("overload"), PORT_OFFSET, text) as platform:
        yield platform


def from_users(platform: Any, requests: int, users: int, seed: int) -> Run:
    load = workload([(requests, 1.0)], streams(None), seed)
    return asyncio.run(offer(load, {platform.url: 1.0}, KEYS, users=users))


def test_the_real_generator_keeps_most_of_its_capacity(unmetered: Any) -> None:
    from_users(unmetered, WARMING, WARM_USERS, seed=0)
    full = from_users(unmetered, SATURATING, USERS, seed=1)
    before_per_s = saturation(full)
    logs = unmetered.home / "logs"
    held_s = statistics.fmean(one.held_s for one in read_log(logs, full) if one.held_s)
    within_s = TIMES_MEAN * held_s

    load = workload([(OVER * before_per_s, OVER_S)], streams(round(1000 * within_s)), seed=2)
    run = asyncio.run(offer(load, {unmetered.url: 1.0}, KEYS))
    # Twice, because whatever else the machine does takes from the one or from the other.
    after_per_s = saturation(from_users(unmetered, SATURATING, USERS, seed=3))
    capacity = max(before_per_s, after_per_s)
    good = Goodput.of(run.since(RISE_S, OVER_S), OVER_S - RISE_S, capacity, within_s)
    lines = read_log(logs, run)
    started = [one for one in lines if RISE_S <= one.at_s < OVER_S and one.held_s]
    retry_after_s = retry_afters(run.answers)
    show(
        "130 % of the real generator",
        {
            "capacity: answers a second, every slot busy, before and after": [
                round(before_per_s, 2),
                round(after_per_s, 2),
            ],
            "slots over the mean time that one is held": round(SLOTS / held_s, 2),
            "refused then": refusals(full.answers),
            "callers' deadline, s": round(within_s, 2),
            "in time": good,
            "waits for a slot, s, mean": round(mean_wait_s(lines, RISE_S, OVER_S), 2),
            "p50, p95, most": quantiles([one.queued_s for one in started], 0.5, 0.95, 1.0),
            "slots held, s, mean": round(statistics.fmean(one.held_s for one in started), 2),
            "Retry-After, s: least, p50, most": quantiles(retry_after_s, 0, 0.5, 1.0),
            "sent late, s: p50, p99, most": quantiles(
                [one.late_s for one in run.answers], 0.5, 0.99, 1.0
            ),
        },
    )
    assert good.offered_per_s > 1.1 * before_per_s
    assert retry_after_s, "nothing was refused: this was no overload"
    assert all(1 <= seconds <= 120 for seconds in retry_after_s)
    assert good.of_capacity_percent >= 60
