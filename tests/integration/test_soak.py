"""Minutes of everything at once: every request ends exactly once, and nothing of it stays.

`--soak-s` says for how long. What is killed and deployed comes at parts of that time.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import aiohttp
import pytest

from cluster.observe import connected
from modelyard.config.demo import OPS_KEY
from modelyard.contract.errors import RequestError
from tests.integration import soak_config
from tests.integration.soak_config import EMBEDDER, TENANTS
from tests.integration.soak_platform import Memory, SoakedPlatform
from tests.integration.soak_requests import (
    CUT,
    HUNG,
    LEFT,
    NOT_OURS,
    TYPED,
    UNENDED,
    WHOLE,
    Sent,
    draw_kind,
    send,
)

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PORT_OFFSET: Final = 640
GENERATOR: Final = "smollm2-135m-instruct@1.0.0"
CLASSIFIER: Final = "support-intent@1.0.0"
SEED: Final = 6
PER_S: Final = 4.0
SMALL_PART: Final = 0.7
LEAVING_PART: Final = 0.1
LEAVE_WITHIN_S: Final = 1.5
WARM_PART: Final = 0.1
LOOKS: Final = 60
PREFIX: Final = "soak-"
# HAProxy learns of a dead ingress by its own looks; the log keeps lines for a tenth of a second.
NOTICED_WITHIN_S: Final = 30.0
UNWRITTEN_S: Final = 1.0
STEADY_LOOKS: Final = 10  # a tenth of a second each, as `wait_for` looks


@dataclass(frozen=True, slots=True)
class Event:
    part: float
    name: str
    do: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Soaked:
    """ingress_kills: on the clock of the requests."""

    requests: Sequence[Sent]
    ingress_kills: Sequence[float]
    memory: Memory

    def lost_its_ingress(self, sent: Sent) -> bool:
        """Whether one died while the request was under way, or too soon after to keep its line."""
        return any(
            sent.ended_s >= at - UNWRITTEN_S and sent.began_s <= at + NOTICED_WITHIN_S
            for at in self.ingress_kills
        )


@pytest.fixture(scope="module")
def soaked_platform(
    start_platform: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SoakedPlatform]:
    text = soak_config.text_of(soak_config.config())
    with start_platform(tmp_path_factory.mktemp("soak"), PORT_OFFSET, text) as platform:
        made = SoakedPlatform(platform)
        with connected(made.running):
            yield made


def events(soaked: SoakedPlatform) -> list[Event]:
    record = soak_config.config()
    retuned = soak_config.retuned(record)
    return [
        Event(0.20, "kill embedder", partial(soaked.kill, EMBEDDER)),
        Event(0.30, "kill ingress", partial(soaked.kill, "ingress")),
        Event(0.40, "kill generator", partial(soaked.kill, GENERATOR)),
        Event(0.50, "kill control", partial(soaked.kill, "control")),
        Event(0.55, "deploy other user_config", partial(soaked.deploy, retuned, "retuned")),
        Event(0.60, "kill classifier", partial(soaked.kill, CLASSIFIER)),
        Event(
            0.70,
            "deploy another embedder",
            partial(soaked.deploy, soak_config.replaced(retuned), "replaced"),
        ),
        Event(0.80, "kill generator", partial(soaked.kill, GENERATOR)),
        Event(0.90, "kill ingress", partial(soaked.kill, "ingress")),
    ]


async def flow(session: aiohttp.ClientSession, soak_s: float) -> list[Sent]:
    """Poisson arrivals until the time is over; returns when the last one has ended."""
    rng = random.Random(SEED)
    tenants, weights = list(TENANTS.values()), [one.weight for one in TENANTS.values()]
    loop = asyncio.get_running_loop()
    over_s, at_s = loop.time() + soak_s, loop.time()
    sent: list[asyncio.Task[Sent]] = []
    while (at_s := at_s + rng.expovariate(PER_S)) < over_s:
        await asyncio.sleep(at_s - loop.time())
        [tenant] = rng.choices(tenants, weights)
        kind = draw_kind(rng, SMALL_PART)
        while tenant.models is not None and kind.model not in tenant.models:
            kind = draw_kind(rng, SMALL_PART)
        leave_s = rng.uniform(0.01, LEAVE_WITHIN_S) if rng.random() < LEAVING_PART else 0.0
        request_id = f"{PREFIX}{len(sent)}"
        sent.append(asyncio.create_task(send(session, kind, tenant.key, request_id, leave_s)))
    return await asyncio.gather(*sent)


async def upset(planned: Sequence[Event], soak_s: float) -> list[tuple[float, str]]:
    """What was done, and when."""
    loop = asyncio.get_running_loop()
    began_s, done = loop.time(), []
    for event in planned:
        await asyncio.sleep(began_s + event.part * soak_s - loop.time())
        done.append((loop.time(), event.name))
        print(f"{loop.time() - began_s:6.1f} s: {event.name}", flush=True)
        await asyncio.to_thread(event.do)
    return done


async def watch(memory: Memory, soak_s: float) -> None:
    while True:
        await asyncio.to_thread(memory.look)
        await asyncio.sleep(soak_s / LOOKS)


async def soak(platform: SoakedPlatform, soak_s: float) -> Soaked:
    memory = Memory(platform, WARM_PART * soak_s)
    watching = asyncio.create_task(watch(memory, soak_s))
    # A connection for each request: what is cut is then never one that merely grew old.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(
        platform.platform.url, connector=connector, timeout=aiohttp.ClientTimeout(total=None)
    ) as session:
        requests, done = await asyncio.gather(
            flow(session, soak_s), upset(events(platform), soak_s)
        )
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    kills = [at_s for at_s, name in done if name == "kill ingress"]
    return Soaked(requests, kills, memory)


@pytest.fixture(scope="module")
def soaked(soaked_platform: SoakedPlatform, pytestconfig: pytest.Config) -> Soaked:
    found = asyncio.run(soak(soaked_platform, pytestconfig.getoption("--soak-s")))
    print(f"{len(found.requests)} requests: {dict(Counter(r.word for r in found.requests))}")
    return found


def test_every_request_ends_once_with_a_result_or_a_typed_error(soaked: Soaked) -> None:
    ends = Counter(sent.end for sent in soaked.requests)
    assert ends[WHOLE] > len(soaked.requests) / 2, ends
    assert ends[LEFT] > 0
    assert ends[TYPED] > 0, "a quota is exceeded, and replicas die: somebody must be told"
    assert ends[HUNG] == ends[UNENDED] == 0, ends
    known = {kind.code for kind in _every(RequestError)}
    assert {sent.code for sent in soaked.requests if sent.end == TYPED} <= known - {"internal"}
    lost = [sent for sent in soaked.requests if sent.end in (CUT, NOT_OURS)]
    for sent in lost:
        seconds = [(sent.began_s - at, sent.ended_s - at) for at in soaked.ingress_kills]
        spans = ", ".join(f"{began:.1f} to {ended:.1f}" for began, ended in seconds)
        print(f"{sent.request_id} {sent.word}: {spans} s from the kills of an ingress")
    assert [sent for sent in lost if not soaked.lost_its_ingress(sent)] == []


def _every(kind: type[RequestError]) -> set[type[RequestError]]:
    return {kind}.union(*(_every(below) for below in kind.__subclasses__()))


def test_every_request_has_one_line_in_the_log_that_says_what_its_caller_saw(
    soaked: Soaked, soaked_platform: SoakedPlatform, wait_for: Any
) -> None:
    counts: list[int] = []

    def at_rest() -> bool:
        counts.append(len(soaked_platform.log_lines(PREFIX)))
        return counts[-STEADY_LOOKS:] == [counts[-1]] * STEADY_LOOKS

    wait_for("a request log that comes to rest", at_rest)
    lines = soaked_platform.log_lines(PREFIX)
    times = Counter(line["request_id"] for line in lines)
    assert set(times.values()) == {1}, [name for name, count in times.items() if count > 1]
    unlogged = [sent for sent in soaked.requests if sent.request_id not in times]
    print(f"{len(lines)} lines; without one: {dict(Counter(sent.word for sent in unlogged))}")
    # Who leaves before the request is read leaves no request.
    assert [s for s in unlogged if s.end != LEFT and not soaked.lost_its_ingress(s)] == []

    code_of = {line["request_id"]: line["code"] for line in lines}
    for sent in soaked.requests:
        if sent.request_id in code_of and sent.end in (WHOLE, TYPED):
            assert code_of[sent.request_id] == (sent.code or "ok"), sent
    reserved = [line for line in lines if line.get("reserved_tokens") is not None]
    assert reserved
    assert [line for line in reserved if line.get("settled_tokens") is None] == []


def test_nothing_runs_waits_or_is_held_afterwards(
    soaked: Soaked, soaked_platform: SoakedPlatform, wait_for: Any
) -> None:
    left: dict[str, float] = {}

    def nothing() -> bool:
        left.clear()
        left.update(soaked_platform.left_over(("capped",)))
        return not left

    try:
        wait_for("a platform at rest", nothing)
    finally:
        print(f"left over: {left}")
    with soaked_platform.platform.client(OPS_KEY) as client:
        assert client.get("/admin/status").status_code == 200


def test_memory_is_flat(soaked: Soaked) -> None:
    grown = soaked.memory.end()
    print("\n".join(map(str, grown)))
    assert grown, "nothing lived through it"
    assert [one for one in grown if one.end_bytes > 1.2 * one.warm_bytes + 100e6] == []
