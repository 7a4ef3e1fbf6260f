"""130 % of what a model can do, for minutes, over the real path; then 70 %.

The model sleeps, so that two cores are enough for everything else. Figures are ratios to the
capacity that the same run measured first; the goals that each print names are design decision 4's.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.benchmarks.measure import busy_s
from tests.benchmarks.stage import Stage, staged
from tests.integration import stand_in
from tests.integration.ingress_port import port_of
from tests.integration.offered_load import Answered, Run, offer, refusals, workload
from tests.integration.overload_report import (
    Goodput,
    back_after_s,
    busy_percent,
    mean_held_s,
    mean_wait_s,
    quantiles,
    read_log,
    retry_afters,
    saturation,
    show,
    undisturbed,
)
from tests.integration.stand_in_apps import KEYS, applications

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    # The head that `staged` starts outlives its Popen object: it is found and stopped by its id.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PORT_OFFSET: Final = 640
INGRESS: Final = "ray::ServeReplica:ingress:Ingress"
WITHIN_S: Final = 2.0
OVER, UNDER = 1.3, 0.7
OVER_S, UNDER_S = 150.0, 60.0
RISE_S: Final = 10.0  # of the overload, not counted
WARMING, WARM_USERS = 150, 8  # requests, by so many users in turn: the queues learn their rates
SATURATING, USERS = 700, 32
SKEW: Final = (0.8, 0.2)


@dataclass(frozen=True, slots=True)
class Overloaded:
    """capacity_per_s: measured, every slot busy. urls: HAProxy's and each ingress's own."""

    stage: Stage
    capacity_per_s: float
    haproxy: str
    ingresses: tuple[str, str]

    def rejections(self) -> int:
        """Of replicas, which an ingress then tried again: it had sent more than they take."""
        logs = (self.stage.running.logs / "serve").glob("replica_*.log")
        return sum(path.read_text().count("at capacity of max_ongoing_requests") for path in logs)


def streams(tenant: str, weight: float, deadline_ms: int | None = 2000) -> list[dict[str, Any]]:
    """Half of its requests are streams."""
    return [
        {
            "name": f"{tenant}-{'streams' if streamed else 'unary'}",
            "route": "chat",
            "model": stand_in.NAME,
            "tenant": tenant,
            "weight": weight / 2,
            "stream": streamed,
            "input_tokens": {"fixed": 8},
            "deadline_ms": deadline_ms,
        }
        for streamed in (False, True)
    ]


def from_users(urls: tuple[str, str], requests: int, users: int, seed: int) -> Run:
    """Users in turn. All is due at once, so that none of them ever pauses."""
    load = workload([(requests, 1.0)], streams("interactive", 1.0, None), seed)
    return asyncio.run(offer(load, dict.fromkeys(urls, 1.0), KEYS, users=users))


def on_time(run: Run, to_s: float) -> tuple[list[tuple[float, float]], list[Answered], float]:
    """The pieces of the overload that count, what was due in them, and their seconds."""
    spans = undisturbed(run, RISE_S, to_s)
    seconds = sum(end - begin for begin, end in spans)
    assert seconds >= (to_s - RISE_S) / 3, "the clients themselves were late nearly all the time"
    return spans, [one for span in spans for one in run.since(*span)], seconds


@pytest.fixture(scope="module")
def overloaded(
    starter_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Overloaded]:
    folder = tmp_path_factory.mktemp("stand-in")
    with staged(applications(folder), PORT_OFFSET, [stand_in.NAME]) as stage:
        first, second = (port_of(process) for process in stage.processes(INGRESS))
        urls = (f"http://127.0.0.1:{first}", f"http://127.0.0.1:{second}")
        from_users(urls, WARMING, WARM_USERS, seed=0)
        run = from_users(urls, SATURATING, USERS, seed=1)
        found = Overloaded(stage, saturation(run), f"http://127.0.0.1:{stage.port}", urls)
        held_s = statistics.fmean(
            one.held_s for one in read_log(stage.home / "logs", run) if one.held_s
        )
        ideal_per_s = stand_in.SLOTS / stand_in.MEAN_S
        show(
            "capacity",
            {
                "answers a second, every slot busy": round(found.capacity_per_s, 2),
                "slots over the mean time that one is held": round(stand_in.SLOTS / held_s, 2),
                "slots over the mean time asleep": round(ideal_per_s, 2),
                "refused": refusals(run.answers),
                "replicas refused": found.rejections(),
            },
        )
        assert found.capacity_per_s >= 0.8 * ideal_per_s, "the machine, and not the model, is full"
        yield found


def test_goodput_stays_at_capacity_and_the_light_ingress_loses_nothing_it_should_not(
    overloaded: Overloaded,
) -> None:
    capacity = overloaded.capacity_per_s
    load = workload(
        [(OVER * capacity, OVER_S), (UNDER * capacity, UNDER_S)],
        streams("interactive", 1.0),
        seed=2,
    )
    meter = overloaded.stage.meter({})
    refused_before, cpu_before = overloaded.rejections(), meter.read()
    run = asyncio.run(offer(load, dict(zip(overloaded.ingresses, SKEW, strict=True)), KEYS))
    cpu = busy_s(cpu_before, meter.read())
    rejected = overloaded.rejections() - refused_before

    spans, window, seconds = on_time(run, OVER_S)
    whole = Goodput.of(window, seconds, capacity, WITHIN_S)
    doors = [
        Goodput.of([one for one in window if one.door == door], seconds, capacity, WITHIN_S)
        for door in (0, 1)
    ]
    after = Goodput.of(run.since(OVER_S, OVER_S + UNDER_S), UNDER_S, capacity, WITHIN_S)
    lines = read_log(overloaded.stage.home / "logs", run)
    started = [one for one in lines if one.held_s and any(a <= one.at_s < b for a, b in spans)]
    waits = [one.queued_s for one in started]
    retry_after_s = retry_afters(run.answers)
    wait_s = mean_wait_s(lines, RISE_S, OVER_S)
    rest_s = mean_wait_s(lines, OVER_S + UNDER_S / 2, OVER_S + UNDER_S)
    show(
        "130 %, four fifths of it at one ingress, then 70 %",
        {
            "seconds counted, in which clients were on time": seconds,
            "in time at 130 % (goal 97 % of capacity, late 1.5 %)": whole,
            "at the heavy ingress": doors[0],
            "at the light ingress (goal: nothing lost)": doors[1],
            "at 70 %": after,
            "slots busy, % of their time": busy_percent(lines, RISE_S, OVER_S, stand_in.SLOTS),
            "started a second, and of those cut at a deadline": [
                round(len(started) / seconds, 2),
                round(sum(one.status != 200 for one in started) / seconds, 2),
            ],
            "slots held, s, mean, at the heavy and the light ingress": list(
                mean_held_s(started).values()
            ),
            "waits for a slot, s, mean": round(wait_s, 3),
            "at the heavy and at the light ingress": [
                round(statistics.fmean(one.queued_s for one in started if one.file == file), 3)
                for file in mean_held_s(started)
            ],
            "p50, p95, p99, longest": quantiles(waits, 0.5, 0.95, 0.99, 1.0),
            "mean wait at 70 %": round(rest_s, 3),
            "s until waits were back (goal 2)": back_after_s(lines, OVER_S, OVER_S + UNDER_S),
            "Retry-After, s: least, p50, p95, most": quantiles(retry_after_s, 0, 0.5, 0.95, 1.0),
            "replicas refused": rejected,
            "sent late, s: p50, p99, most": quantiles(
                [one.late_s for one in run.answers], 0.5, 0.99, 1.0
            ),
            "CPU seconds of ingresses, model, HAProxy": [
                round(cpu[name], 1)
                for name in ("ingress:Ingress", f"{stand_in.VERSION}:Generator", "haproxy")
            ],
            "cores that an ingress kept busy": round(
                cpu["ingress:Ingress"] / 2 / (OVER_S + UNDER_S), 3
            ),
        },
    )
    assert whole.offered_per_s > 1.15 * capacity
    assert whole.of_capacity_percent >= 85
    assert doors[1].of_offered_percent >= 85, "it asks for half of its fair share"
    assert after.of_offered_percent >= 85
    assert all(1 <= seconds <= 120 for seconds in retry_after_s)
    assert retry_after_s, "nothing was refused: this was no overload"
    assert rest_s < wait_s / 2, "the queue never drained"
    assert rejected < len(run.answers), "the shares do not keep to the slots"


def test_the_higher_band_is_served_in_time_whatever_the_lower_one_asks(
    overloaded: Overloaded,
) -> None:
    capacity = overloaded.capacity_per_s
    seconds = 100.0
    load = workload(
        [(OVER * capacity, seconds)], streams("interactive", 0.4) + streams("batch", 0.6), seed=3
    )
    run = asyncio.run(offer(load, {overloaded.haproxy: 1.0}, KEYS))
    _, window, counted_s = on_time(run, seconds)
    whole, high, low = (
        Goodput.of(
            [one for one in window if one.stream.startswith(tenant)],
            counted_s,
            capacity,
            WITHIN_S,
        )
        for tenant in ("", "interactive", "batch")
    )
    show(
        "130 % through HAProxy, 40 % of it interactive",
        {
            "seconds counted": counted_s,
            "all": whole,
            "interactive (goal 99 % of offered)": high,
            "batch": low,
        },
    )
    assert high.of_offered_percent >= 95
    assert whole.of_capacity_percent >= 85
