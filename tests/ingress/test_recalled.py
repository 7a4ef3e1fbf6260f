"""A rollback and the requests that have not started: they are answered by the stable version."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from modelyard.config.table import Table, parse_table
from modelyard.contract.envelope import Item, Usage
from modelyard.contract.errors import ReplicaDied
from modelyard.contract.headers import DEBUG
from modelyard.control.published import Published
from modelyard.ingress.prepared import Prepared
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    EVALUATOR_KEY,
    InMemoryIngress,
    post,
    table_record,
)
from modelyard.testing.scripted_transport import Sleep, Step
from modelyard.testing.virtual_time import run_virtual

Prepare = Callable[..., Prepared]
Ingress = Callable[..., InMemoryIngress]
ANSWER = Item(b"{}", 0, Usage(7, 2))
ALL = Published(1, 1, (("r-1", 100.0),))
LESS = Published(1, 2, (("r-1", 99.99),))
ROLLED_BACK = Published(1, 3, (("r-1", 0.0),), finished=frozenset({"r-1"}))


def table() -> Table:
    chat = {"stable": "gen@1.0.0", "canary": "gen@2.0.0", "rollout": {"id": "r-1"}}
    tenants = {"alpha": {"models": ["*"]}, "beta": {"models": ["*"]}}
    return parse_table(table_record(routes={"chat": chat}, tenants=tenants))


def busy(
    ingress_at: Ingress, *scripts: list[Step], stable: bool = True, slots: int = 1
) -> InMemoryIngress:
    """Both versions are ready, unless stable is not, with a replica of a slot or two."""
    ingress = ingress_at(*scripts, table=table())
    ready = [post(app, slots=slots) for app in ("gen@2.0.0", "gen@1.0.0")[: 1 + stable]]
    ingress.fleet.update([post("gen@1.0.0"), *ready])
    ingress.fleet.update(ready)
    ingress.pipeline.obey(ALL)
    return ingress


def on_virtual_time(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    def run(ingress_at: Ingress, prepare: Prepare) -> None:
        async def main() -> None:
            await test(ingress_at, prepare)

        run_virtual(main())

    run.__name__ = test.__name__
    return run


def send(
    ingress: InMemoryIngress, prepare: Prepare, key: str = ALPHA_KEY, **changes: Any
) -> asyncio.Task[Item]:
    prepared = prepare(ingress.pipeline, key=key, **changes)
    return asyncio.create_task(ingress.pipeline.call(prepared))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def versions(ingress: InMemoryIngress) -> list[str]:
    return [call.cell.app for call in ingress.transport.calls]


def nothing_stays(ingress: InMemoryIngress) -> None:
    told = ingress.pipeline.post()
    assert (told.waiting, told.running, told.in_flight) == ((), (), ())


@on_virtual_time
async def test_what_waits_for_the_canary_is_answered_by_stable_and_what_runs_ends_there(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    slow: list[Step] = [Sleep(5.0), ANSWER]
    ingress = busy(ingress_at, slow, slow, [ANSWER], [ANSWER], slots=2)
    tasks = [send(ingress, prepare) for _ in range(4)]
    await settle()
    assert versions(ingress) == ["gen@2.0.0"] * 2
    ingress.pipeline.obey(ROLLED_BACK)
    await asyncio.gather(*tasks)
    assert versions(ingress) == ["gen@2.0.0"] * 2 + ["gen@1.0.0"] * 2
    told = sorted((one.version, one.arm, one.rollout, one.status) for one in ingress.records)
    assert told == [
        *[("gen@1.0.0", "stable", "", 200)] * 2,
        *[("gen@2.0.0", "canary", "r-1", 200)] * 2,
    ]
    # The two did not wait for the canary's slot.
    assert sorted(one.duration_ms >= 5000 for one in ingress.records) == [False, False, True, True]
    nothing_stays(ingress)


@on_virtual_time
async def test_a_weight_that_only_falls_recalls_nobody(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, [Sleep(1.0), ANSWER], [ANSWER])
    tasks = [send(ingress, prepare) for _ in range(2)]
    await settle()
    ingress.pipeline.obey(LESS)
    await asyncio.gather(*tasks)
    assert versions(ingress) == ["gen@2.0.0", "gen@2.0.0"]
    nothing_stays(ingress)


@on_virtual_time
async def test_an_evaluator_waits_on_for_the_version_that_it_named(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, [Sleep(1.0), ANSWER], [ANSWER])
    first = send(ingress, prepare)
    await settle()
    named = send(ingress, prepare, EVALUATOR_KEY, model="gen@2.0.0")
    await settle()
    ingress.pipeline.obey(ROLLED_BACK)
    await asyncio.gather(first, named)
    assert versions(ingress) == ["gen@2.0.0", "gen@2.0.0"]


@on_virtual_time
async def test_a_retry_after_a_death_goes_where_new_requests_go(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    died = ReplicaDied("the replica died", replica="r1")
    ingress = busy(ingress_at, [Sleep(1.0), died], [ANSWER])
    task = send(ingress, prepare)
    await settle()
    ingress.pipeline.obey(ROLLED_BACK)
    await task
    assert versions(ingress) == ["gen@2.0.0", "gen@1.0.0"]
    nothing_stays(ingress)


@on_virtual_time
async def test_a_status_that_named_the_canary_binds_the_request_to_it(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, [Sleep(1.0), ANSWER], [ANSWER])
    first, prepared = send(ingress, prepare), prepare(ingress.pipeline)
    await settle()
    second = asyncio.create_task(ingress.pipeline.call(prepared))
    await settle()
    prepared.status_sent = True
    ingress.pipeline.obey(ROLLED_BACK)
    await asyncio.gather(first, second)
    assert versions(ingress) == ["gen@2.0.0", "gen@2.0.0"]


@on_virtual_time
async def test_without_a_stable_replica_it_is_not_loaded_as_for_a_new_request(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, [Sleep(1.0), ANSWER], stable=False)
    tasks = [send(ingress, prepare) for _ in range(2)]
    await settle()
    ingress.pipeline.obey(ROLLED_BACK)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results[0] == ANSWER
    assert [one.reason for one in ingress.records if one.status != 200] == ["not_loaded"]
    assert [wish.version for wish in ingress.pipeline.post().wishes] == ["gen@1.0.0"]
    nothing_stays(ingress)


@on_virtual_time
async def test_a_client_that_leaves_at_that_moment_leaves_nothing_behind(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, [Sleep(1.0), ANSWER])
    first, second = send(ingress, prepare), send(ingress, prepare)
    await settle()
    ingress.pipeline.obey(ROLLED_BACK)
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    assert sorted(one.status for one in ingress.records) == [200, 499]
    nothing_stays(ingress)


@on_virtual_time
async def test_who_may_ask_is_told_both_ways(ingress_at: Ingress, prepare: Prepare) -> None:
    ingress = busy(ingress_at, [Sleep(1.0), ANSWER], [ANSWER])
    first = send(ingress, prepare)
    await settle()
    asked = prepare(ingress.pipeline, key=EVALUATOR_KEY, headers={DEBUG: "1"})
    second = asyncio.create_task(ingress.pipeline.call(asked))
    await settle()
    ingress.pipeline.obey(ROLLED_BACK)
    await asyncio.gather(first, second)
    assert asked.trail is not None
    arms = [step.facts["why"] for step in asked.trail.steps if step.name == "arm"]
    assert arms == ["weight", "rolled_back"]
    assert json.loads(asked.trail.header())["cell"]["cell"] == "gen@1.0.0"


@on_virtual_time
async def test_a_cap_that_only_the_canary_allowed_is_lowered_to_what_stable_makes(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, [Sleep(1.0), ANSWER], [ANSWER], slots=1)
    large = post("gen@2.0.0", slots=1)
    assert large.report.description is not None
    description = replace(large.report.description, max_output_tokens=1024)
    large = replace(large, report=replace(large.report, description=description))
    ingress.fleet.update([post("gen@1.0.0", slots=1), large])
    first = send(ingress, prepare)
    await settle()
    prepared = prepare(ingress.pipeline, max_tokens=800)
    second = asyncio.create_task(ingress.pipeline.call(prepared))
    await settle()
    ingress.pipeline.obey(ROLLED_BACK)
    await asyncio.gather(first, second)
    assert versions(ingress) == ["gen@2.0.0", "gen@1.0.0"]
    sent = json.loads(ingress.transport.calls[1].envelope.body)
    assert sent["max_completion_tokens"] == prepared.work.cap_tokens == 512
    assert prepared.record.degraded == "max_output_tokens=512"
