"""Load on a platform in the open loop or from users in turn, with every request's end kept."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from modelyard.bench.http_sender import HttpSender
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.recorder import Recorder
from modelyard.bench.runner import Runner
from modelyard.workload.mix import SCHEMA, Workload
from modelyard.workload.plan import Planned, plan

TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Answered:
    """One request: when it was due, on the clock of the run's `began`, and what became of it."""

    at_s: float
    door: int
    stream: str
    late_s: float
    latency_s: float
    outcome: Outcome

    @property
    def completed(self) -> bool:
        return self.outcome.verdict is Verdict.COMPLETED


@dataclass(frozen=True, slots=True)
class Run:
    """began: on the wall clock, as the request log has it."""

    began: float
    answers: Sequence[Answered]

    def since(self, from_s: float, to_s: float) -> list[Answered]:
        return [one for one in self.answers if from_s <= one.at_s < to_s]


class Doors:
    """A sender for each address, drawn by weight: a client library that keeps its connections."""

    def __init__(self, senders: Sequence[HttpSender], weights: Sequence[float], seed: int) -> None:
        self._senders = senders
        self._weights = weights
        self._seed = seed

    def of(self, planned: Planned) -> int:
        draw = random.Random(f"{self._seed}:door:{planned.number}")
        [door] = draw.choices(range(len(self._senders)), self._weights)
        return door

    async def send(self, planned: Planned) -> Outcome:
        return await self._senders[self.of(planned)].send(planned)


class Keeper(Recorder):
    """Keeps what the bench's recorder adds up."""

    def __init__(self, workload: Workload, doors: Doors, duration_s: float) -> None:
        super().__init__(workload, warmup_s=0.0, duration_s=duration_s)
        self._doors = doors
        self._late_s: dict[int, float] = {}
        self.answers: list[Answered] = []

    def sent(self, planned: Planned, late_s: float) -> None:
        super().sent(planned, late_s)
        self._late_s[planned.number] = late_s

    def end(self, planned: Planned, due: float, outcome: Outcome) -> None:
        super().end(planned, due, outcome)
        self.answers.append(
            Answered(
                planned.at_s,
                self._doors.of(planned),
                planned.stream.name,
                self._late_s.pop(planned.number),
                outcome.ended - due,
                outcome,
            )
        )


def workload(
    steps: Sequence[tuple[float, float]], streams: Sequence[Mapping[str, Any]], seed: int
) -> Workload:
    """steps: requests a second, for so many seconds."""
    shape = [{"rate_per_s": rate, "for_s": seconds} for rate, seconds in steps]
    return Workload.model_validate(
        {
            "schema": SCHEMA,
            "seed": seed,
            "arrivals": {"steps": {"steps": shape}},
            "streams": list(streams),
        }
    )


async def offer(
    load: Workload,
    urls: Mapping[str, float],
    keys: Mapping[str, str],
    *,
    users: int | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Run:
    """Send a whole workload. urls: with their part of the load. users: in turn, not on time."""
    duration_s = load.length_s({})
    assert duration_s is not None
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        senders = [
            HttpSender(session, url, keys, seed=load.seed, now=now, timeout_s=TIMEOUT_S)
            for url in urls
        ]
        doors = Doors(senders, list(urls.values()), load.seed)
        keeper = Keeper(load, doors, duration_s)
        began = time.time()
        runner = Runner(doors, keeper, now=now, seed=load.seed)
        await runner.run(plan(load, {}, duration_s), closed_loop_users=users)
    return Run(began, sorted(keeper.answers, key=lambda one: one.at_s))


def refusals(answers: Sequence[Answered]) -> dict[str, int]:
    """How many ended with each code and reason that is no answer."""
    kinds = Counter(
        f"{one.outcome.code} {one.outcome.reason}" for one in answers if not one.completed
    )
    return dict(kinds.most_common())
