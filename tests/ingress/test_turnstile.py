"""The queue on the data path: whole requests, on a clock that jumps."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any

import pytest

from modelyard.config.table import parse_table
from modelyard.contract.envelope import Failure, Item, Usage
from modelyard.contract.errors import DeadlineExceeded, Overloaded, ReplicaDied
from modelyard.contract.headers import DEADLINE_MS, DEBUG
from modelyard.contract.operations import Kind, Operation
from modelyard.control.ingress_post import IngressPost
from modelyard.control.published import Override, Published
from modelyard.control.reading import IngressEntry, Reading
from modelyard.ingress.prepared import Prepared
from modelyard.testing.in_memory import EVALUATOR_KEY, InMemoryIngress, post, table_record
from modelyard.testing.scripted_transport import Sleep, Step
from modelyard.testing.virtual_time import run_virtual

Prepare = Callable[..., Prepared]
Ingress = Callable[..., InMemoryIngress]
ANSWER = Item(b"{}", 0, Usage(7, 2))
SLOTS = 2
WORK_S = 1.0


def table(**chat: Any) -> Any:
    routes = {"chat": {"stable": "gen@1.0.0"} | chat}
    tenants = {
        "alpha": {"tier": "paid", "models": ["*"]},
        "beta": {"priority": "batch", "models": ["*"]},
    }
    return parse_table(table_record(routes=routes, tenants=tenants))


def busy(ingress_at: Ingress, requests: int, **chat: Any) -> InMemoryIngress:
    """An ingress alone with one replica of two slots, where each answer takes a second."""
    scripts = [[Sleep(WORK_S), ANSWER] for _ in range(requests)]
    ingress = ingress_at(*scripts, table=table(**chat))
    ingress.fleet.update([post("gen@1.0.0", slots=SLOTS)])
    return ingress


def send(ingress: InMemoryIngress, prepare: Prepare, **changes: Any) -> asyncio.Task[Item]:
    return asyncio.create_task(ingress.pipeline.call(prepare(ingress.pipeline, **changes)))


async def ended(*tasks: asyncio.Task[Any]) -> list[str]:
    """How each ended: ok, the reason of its refusal, or cancelled."""
    results = await asyncio.gather(*tasks, return_exceptions=True)
    return [_word(result) for result in results]


def _word(result: Any) -> str:
    if isinstance(result, Overloaded | DeadlineExceeded):
        return result.reason
    return "cancelled" if isinstance(result, asyncio.CancelledError) else "ok"


async def settle() -> None:
    """Let every task run until it waits for the clock."""
    for _ in range(20):
        await asyncio.sleep(0)


def nothing_stays(ingress: InMemoryIngress) -> None:
    told = ingress.pipeline.post()
    assert (told.waiting, told.running, told.in_flight) == ((), (), ())


def on_virtual_time(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    def run(ingress_at: Ingress, prepare: Prepare) -> None:
        async def main() -> None:
            await test(ingress_at, prepare)

        coroutine: Coroutine[Any, Any, None] = main()
        run_virtual(coroutine)

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


@on_virtual_time
async def test_who_finds_a_slot_does_not_wait(ingress_at: Ingress, prepare: Prepare) -> None:
    ingress = busy(ingress_at, SLOTS)
    assert await ended(*[send(ingress, prepare) for _ in range(SLOTS)]) == ["ok"] * SLOTS
    assert [record.queued_ms for record in ingress.records] == [None] * SLOTS
    nothing_stays(ingress)


@on_virtual_time
async def test_no_more_run_than_there_are_slots_and_the_rest_wait(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 4)
    sent = [send(ingress, prepare) for _ in range(4)]
    await settle()
    told = ingress.pipeline.post()
    assert told.running == (("gen@1.0.0", "interactive", 2),)
    assert told.waiting == (("gen@1.0.0", "interactive", 2),)
    assert told.in_flight == (("gen@1.0.0", 4),)
    assert len(ingress.transport.calls) == SLOTS
    assert await ended(*sent) == ["ok"] * 4
    assert asyncio.get_running_loop().time() == pytest.approx(2 * WORK_S)
    assert sorted(record.queued_ms or 0 for record in ingress.records) == [0, 0, 1000, 1000]
    nothing_stays(ingress)


@on_virtual_time
async def test_interactive_requests_start_before_batch_that_came_first(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 4)
    sent = [send(ingress, prepare) for _ in range(SLOTS)]
    await settle()
    batch = send(ingress, prepare, key=EVALUATOR_KEY)
    await settle()
    high = send(ingress, prepare)
    await settle()
    assert await ended(*sent, batch, high) == ["ok"] * 4
    assert [call.envelope.band for call in ingress.transport.calls[SLOTS:]] == [
        "interactive",
        "batch",
    ]


@on_virtual_time
async def test_a_full_queue_refuses_with_a_retry_after(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    """Before anything is measured as many may wait as may run."""
    ingress = busy(ingress_at, 2 * SLOTS)
    sent = [send(ingress, prepare) for _ in range(2 * SLOTS + 1)]
    assert sorted(await ended(*sent)) == ["ok"] * 4 + ["queue_full"]
    (refused,) = [record for record in ingress.records if record.status == 503]
    assert (refused.code, refused.reason, refused.attempt) == ("overloaded", "queue_full", 0)
    error = next(task.exception() for task in sent if task.exception())
    assert isinstance(error, Overloaded)
    assert error.retryable
    assert 1 <= (error.retry_after_s or 0) <= 120
    nothing_stays(ingress)


@on_virtual_time
async def test_batch_leaves_a_full_queue_to_interactive(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 2 * SLOTS)
    sent = [send(ingress, prepare) for _ in range(SLOTS)]
    batch = [send(ingress, prepare, key=EVALUATOR_KEY) for _ in range(SLOTS)]
    await settle()
    high = send(ingress, prepare)
    assert await ended(*sent, *batch, high) == ["ok", "ok", "ok", "evicted", "ok"]
    nothing_stays(ingress)


@on_virtual_time
async def test_who_cannot_be_started_in_time_is_told_when_that_is_known(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    """Two answers of a second each are before it, and it has 1.4 seconds."""
    ingress = busy(ingress_at, 3)
    sent = [send(ingress, prepare) for _ in range(SLOTS)]
    await settle()
    late = send(ingress, prepare, headers={DEADLINE_MS: "400"})
    began = asyncio.get_running_loop().time()
    assert await ended(late) == ["expired_in_queue"]
    assert asyncio.get_running_loop().time() - began == pytest.approx(0.4)
    assert await ended(*sent) == ["ok", "ok"]
    assert len(ingress.transport.calls) == SLOTS
    (record,) = [one for one in ingress.records if one.status == 503]
    assert record.queued_ms == pytest.approx(400)
    nothing_stays(ingress)


@on_virtual_time
async def test_a_request_that_was_too_late_before_it_came_is_a_504(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 0)
    prepared = prepare(ingress.pipeline, headers={DEADLINE_MS: "1"})
    await asyncio.sleep(0.01)
    with pytest.raises(DeadlineExceeded) as caught:
        await ingress.pipeline.call(prepared)
    assert (caught.value.reason, caught.value.retryable) == ("expired", True)
    nothing_stays(ingress)


@on_virtual_time
async def test_who_leaves_while_waiting_never_reaches_the_model(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 3)
    sent = [send(ingress, prepare) for _ in range(SLOTS)]
    await settle()
    gone = send(ingress, prepare)
    behind = send(ingress, prepare)
    await settle()
    gone.cancel()
    assert await ended(gone, behind, *sent) == ["cancelled", "ok", "ok", "ok"]
    assert len(ingress.transport.calls) == 3
    assert [one.status for one in ingress.records if one.attempt == 0] == [499]
    nothing_stays(ingress)


@on_virtual_time
async def test_who_leaves_in_the_moment_of_being_let_in_gives_the_slot_on(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 4)
    sent = [send(ingress, prepare) for _ in range(SLOTS)]
    await settle()
    gone = send(ingress, prepare)
    await settle()
    behind = send(ingress, prepare)
    await settle()
    turnstile = ingress.pipeline.turnstile
    [ticket_id, _] = turnstile._waiters
    waiter = turnstile._waiters[ticket_id]
    waiter.add_done_callback(lambda _: gone.cancel())
    assert await ended(gone, behind, *sent) == ["cancelled", "ok", "ok", "ok"]
    nothing_stays(ingress)


@on_virtual_time
async def test_a_stream_gives_its_slot_back_with_its_last_item_not_when_that_is_read(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 1)
    prepared = prepare(ingress.pipeline, stream=True)
    async with aclosing(ingress.pipeline.stream(prepared)) as items:
        async for item in items:
            assert item.final is not None
            assert ingress.pipeline.post().running == ()
    nothing_stays(ingress)


@on_virtual_time
async def test_a_retry_keeps_its_slot(ingress_at: Ingress, prepare: Prepare) -> None:
    """Whoever waits behind it must not be the reason that an accepted request is refused."""
    died = ReplicaDied("gone", replica="r1")
    ingress = ingress_at(
        [Sleep(WORK_S), died],
        [Sleep(WORK_S), ANSWER],
        [Sleep(WORK_S), ANSWER],
        [Sleep(WORK_S), ANSWER],
        table=table(),
    )
    ingress.fleet.update(
        [post("gen@1.0.0", slots=1, replica="a"), post("gen@1.0.0", slots=1, replica="b")]
    )
    sent = [send(ingress, prepare) for _ in range(3)]
    assert await ended(*sent) == ["ok"] * 3
    retried, waited = (
        [one for one in ingress.records if one.attempt == 2],
        [one for one in ingress.records if one.queued_ms],
    )
    assert [one.queued_ms for one in retried] == [None]
    assert [one.queued_ms for one in waited] == [pytest.approx(1000)]
    nothing_stays(ingress)


@on_virtual_time
async def test_a_turn_to_the_other_arm_moves_the_slot(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    too_long = Failure("invalid_request", "too long", wire_code="context_length_exceeded")
    arms = {"canary": "gen@2.0.0", "rollout": {"id": "r-1"}}
    ingress = ingress_at([too_long], [Sleep(WORK_S), ANSWER], table=table(**arms))
    ingress.fleet.update(
        [post("gen@1.0.0", slots=1), post("gen@2.0.0", slots=1, max_context_tokens=8192)]
    )
    ingress.pipeline.obey(Published(1, 1, (("r-1", 1.0),)))
    # This conversation draws 0.88 of r-1, so that at 1 % it is on stable.
    sent = send(ingress, prepare, headers={"X-Conversation-Id": "c-1"})
    await settle()
    assert ingress.pipeline.post().running == (("gen@2.0.0", "interactive", 1),)
    assert await ended(sent) == ["ok"]
    nothing_stays(ingress)


def other(running: int, waiting: int = 0, age_s: float = 0.1) -> IngressEntry:
    lane = ("gen@1.0.0", "interactive")
    told = IngressPost(
        "another", "d", True, waiting=((*lane, waiting),), running=((*lane, running),)
    )
    return IngressEntry(told, age_s)


def reading(ingress: InMemoryIngress, *others: IngressEntry) -> Reading:
    own = IngressEntry(ingress.pipeline.post(), 0.0)
    posts = (post("gen@1.0.0", slots=4),)
    return Reading(posts, (own, *others), (), None, None, 60.0)


@on_virtual_time
async def test_its_fair_part_is_an_ingresss_at_once(ingress_at: Ingress, prepare: Prepare) -> None:
    """Whatever the others have: they give it back as their answers end."""
    ingress = busy(ingress_at, 3)
    ingress.pipeline.take(reading(ingress, other(4, waiting=9)))
    sent = [send(ingress, prepare) for _ in range(3)]
    await settle()
    assert len(ingress.transport.calls) == 2
    assert await ended(*sent) == ["ok"] * 3


@on_virtual_time
async def test_what_another_ingress_does_not_use_is_used_once_that_was_heard(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    """A burst may have come to both: its word of before says nothing."""
    ingress = busy(ingress_at, 4)
    ingress.pipeline.take(reading(ingress, other(0)))
    await asyncio.sleep(0.05)
    sent = [send(ingress, prepare) for _ in range(4)]
    await settle()
    assert len(ingress.transport.calls) == 2
    assert ingress.pipeline.turnstile.pressed.is_set()
    assert ingress.pipeline.turnstile.lanes.is_contended
    ingress.pipeline.take(reading(ingress, other(0, age_s=0.01)))
    await settle()
    assert len(ingress.transport.calls) == 2
    await asyncio.sleep(0.05)
    ingress.pipeline.take(reading(ingress, other(0, age_s=0.01)))
    await settle()
    assert len(ingress.transport.calls) == 4
    assert not ingress.pipeline.turnstile.lanes.is_contended
    assert await ended(*sent) == ["ok"] * 4
    nothing_stays(ingress)


@on_virtual_time
async def test_a_share_that_grows_with_an_arrival_starts_who_waited_before_it(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    """Not the one that arrives, and not from the next answer that ends on."""
    ingress = busy(ingress_at, 5)
    ingress.pipeline.take(reading(ingress, other(4, waiting=4)))
    sent = [send(ingress, prepare) for _ in range(4)]
    await settle()
    assert len(ingress.transport.calls) == 2
    await asyncio.sleep(0.2)
    ingress.pipeline.turnstile.lanes.take((other(1),))  # heard, and nobody was told yet
    sent.append(send(ingress, prepare))
    await settle()
    assert len(ingress.transport.calls) == 3
    assert ingress.records == []
    assert await ended(*sent) == ["ok"] * 5


@on_virtual_time
async def test_slots_that_others_ask_for_are_shared(ingress_at: Ingress, prepare: Prepare) -> None:
    ingress = busy(ingress_at, 4)
    ingress.pipeline.take(reading(ingress, other(4, waiting=4)))
    sent = [send(ingress, prepare) for _ in range(4)]
    await settle()
    assert len(ingress.transport.calls) == 2
    assert await ended(*sent) == ["ok"] * 4


@on_virtual_time
async def test_without_the_board_each_takes_its_part_of_those_last_known(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 4)
    ingress.pipeline.take(reading(ingress, other(2, waiting=2)))
    sent = [send(ingress, prepare) for _ in range(4)]
    await settle()
    assert len(ingress.transport.calls) == 2
    ingress.pipeline.take(reading(ingress))  # the other is gone
    await settle()
    assert len(ingress.transport.calls) == 4
    assert await ended(*sent) == ["ok"] * 4
    ingress.pipeline.take(reading(ingress, other(4)))
    await asyncio.sleep(2.5)
    ingress.pipeline.refresh()
    assert ingress.pipeline.turnstile.lanes.queue("gen@1.0.0").share == 2


@on_virtual_time
async def test_a_replica_that_comes_starts_those_who_wait(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 4)
    sent = [send(ingress, prepare) for _ in range(4)]
    await settle()
    assert len(ingress.transport.calls) == 2
    ingress.pipeline.take(reading(ingress))
    await settle()
    assert len(ingress.transport.calls) == 4
    assert await ended(*sent) == ["ok"] * 4


@on_virtual_time
async def test_a_routes_own_bound_counts_for_all_ingresses_together(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 3, limits={"max_queued_requests": 1})
    sent = [send(ingress, prepare) for _ in range(SLOTS + 2)]
    assert sorted(await ended(*sent)) == ["ok", "ok", "ok", "queue_full"]


@on_virtual_time
async def test_an_operator_changes_the_bound_while_it_runs(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 3)
    target = "route:chat/max_queued_requests"
    override = Override("limit", target, 1, "ops", "why", 60)
    ingress.pipeline.obey(Published(1, 1, overrides=(override,)))
    ingress.pipeline.refresh()
    sent = [send(ingress, prepare) for _ in range(SLOTS + 2)]
    assert sorted(await ended(*sent)) == ["ok", "ok", "ok", "queue_full"]


@on_virtual_time
async def test_output_is_capped_while_the_queue_is_half_full(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(
        ingress_at, 4, overload={"cap_output_tokens": 16}, limits={"max_queued_requests": 2}
    )
    sent = [send(ingress, prepare, max_tokens=100) for _ in range(4)]
    assert await ended(*sent) == ["ok"] * 4
    caps = [b'"max_completion_tokens": 16' in c.envelope.body for c in ingress.transport.calls]
    assert caps == [False, False, False, True]
    assert sorted(record.degraded for record in ingress.records) == [
        "",
        "",
        "",
        "max_output_tokens=16",
    ]


@on_virtual_time
async def test_what_the_queue_refuses_goes_to_the_fallback(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 5, overload={"fallback": "small@1.0.0"})
    ingress.fleet.update([post("gen@1.0.0", slots=2), post("small@1.0.0", slots=2)])
    sent = [send(ingress, prepare, max_tokens=100) for _ in range(5)]
    assert await ended(*sent) == ["ok"] * 5
    fallen = [record for record in ingress.records if record.degraded]
    assert [(one.version, one.degraded) for one in fallen] == [
        ("small@1.0.0", "fallback=small@1.0.0")
    ]
    nothing_stays(ingress)


@on_virtual_time
async def test_what_is_refused_was_not_degraded(ingress_at: Ingress, prepare: Prepare) -> None:
    limits = {"max_queued_requests": 2}
    ingress = busy(ingress_at, 4, overload={"cap_output_tokens": 16}, limits=limits)
    sent = [send(ingress, prepare, max_tokens=100) for _ in range(8)]
    await ended(*sent)
    refused = [record for record in ingress.records if record.status == 503]
    assert len(refused) == 4
    assert [record.degraded for record in refused] == [""] * 4


@on_virtual_time
async def test_a_fallback_counts_where_it_runs(ingress_at: Ingress, prepare: Prepare) -> None:
    ingress = busy(ingress_at, 6, overload={"fallback": "small@1.0.0"})
    ingress.fleet.update([post("gen@1.0.0", slots=2), post("small@1.0.0", slots=2)])
    sent = [send(ingress, prepare, max_tokens=100) for _ in range(6)]
    await settle()
    assert ingress.pipeline.post().in_flight == (("gen@1.0.0", 4), ("small@1.0.0", 2))
    assert await ended(*sent) == ["ok"] * 6
    nothing_stays(ingress)


@on_virtual_time
async def test_a_fallback_is_told_in_the_debug_header(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 5, overload={"fallback": "small@1.0.0"})
    ingress.fleet.update([post("gen@1.0.0", slots=2), post("small@1.0.0", slots=2)])
    sent = [send(ingress, prepare, max_tokens=100) for _ in range(4)]
    await settle()
    prepared = prepare(ingress.pipeline, key=EVALUATOR_KEY, headers={DEBUG: "1"}, max_tokens=100)
    await ingress.pipeline.call(prepared)
    assert prepared.trail is not None
    told = json.loads(prepared.trail.header())
    assert told["fallback"] == {"version": "small@1.0.0"}
    await ended(*sent)


@on_virtual_time
async def test_once_its_headers_are_sent_no_other_version_answers(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 4, overload={"fallback": "small@1.0.0"})
    ingress.fleet.update([post("gen@1.0.0", slots=2), post("small@1.0.0", slots=2)])
    sent = [send(ingress, prepare) for _ in range(2)]
    batch = [prepare(ingress.pipeline, key=EVALUATOR_KEY) for _ in range(2)]
    waiting = [asyncio.create_task(ingress.pipeline.call(one)) for one in batch]
    await settle()
    batch[1].status_sent = True
    high = send(ingress, prepare)
    assert await ended(*sent, *waiting, high) == ["ok", "ok", "ok", "evicted", "ok"]


@on_virtual_time
async def test_another_order_holds_for_those_who_wait_already(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 4)
    sent = [send(ingress, prepare) for _ in range(4)]
    await settle()
    ingress.pipeline.adopt(table(overload={"order": "shortest", "age_cap_s": 30}))
    queue = ingress.pipeline.turnstile.lanes.queue("gen@1.0.0")
    assert (queue.waiting, queue.in_flight) == (2, 2)
    assert await ended(*sent) == ["ok"] * 4
    nothing_stays(ingress)


@on_virtual_time
async def test_a_request_set_aside_as_late_is_told_whatever_the_table_becomes(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    ingress = busy(ingress_at, 0)
    ingress.fleet.update([post("gen@1.0.0", slots=0)])
    late = send(ingress, prepare, headers={DEADLINE_MS: "400"})
    await settle()
    turnstile = ingress.pipeline.turnstile
    assert turnstile._timer is not None
    turnstile._timer.cancel()  # the loop was busy: a reading of the board comes before it rings
    await asyncio.sleep(0.45)
    ingress.fleet.update([post("gen@1.0.0", slots=2)])
    turnstile.take(())
    ingress.pipeline.adopt(table(overload={"order": "shortest", "age_cap_s": 30}))
    turnstile._ring()
    assert await ended(late) == ["expired_in_queue"]


@on_virtual_time
async def test_requests_cancelled_at_random_leave_every_counter_at_zero(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    chance = random.Random(7)
    ingress = ingress_at(table=table())
    ingress.fleet.update([post("gen@1.0.0", slots=5), post("small@1.0.0", slots=2)])
    scripts: list[list[Step]] = [[Sleep(chance.uniform(0, 0.3)), ANSWER] for _ in range(400)]
    ingress.transport.expect(*scripts)

    async def one(number: int) -> str:
        await asyncio.sleep(chance.uniform(0, 4))
        key = {"key": EVALUATOR_KEY} if number % 3 else {}
        sent = send(ingress, prepare, stream=False, **key)
        await asyncio.sleep(chance.uniform(0, 0.4))
        if number % 2:
            sent.cancel()
        return (await ended(sent))[0]

    words = await asyncio.gather(*(one(number) for number in range(400)))
    assert len(ingress.records) == 400
    assert {"ok", "cancelled", "queue_full"} <= set(words)
    nothing_stays(ingress)
    assert ingress.pipeline.turnstile._waiters == {}


@on_virtual_time
async def test_shortest_first_learns_who_asks_for_little(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    """Ten answers of each length by their caps, then one of each waits: the short one is next."""
    short, long = ({"max_tokens": 8}, {"max_tokens": 500})
    ingress = ingress_at(table=table(overload={"order": "shortest", "age_cap_s": 30}))
    ingress.fleet.update([post("gen@1.0.0", slots=2)])
    for _ in range(10):
        for tokens, asked in ((8, short), (400, long)):
            ingress.transport.expect([Item(b"{}", 0, Usage(7, tokens))])
            assert await ended(send(ingress, prepare, **asked)) == ["ok"]
    scripts: list[list[Step]] = [[Sleep(WORK_S + n / 10), ANSWER] for n in range(4)]
    ingress.transport.expect(*scripts)
    sent = [send(ingress, prepare) for _ in range(SLOTS)]
    await settle()
    for asked in (long, short):
        sent.append(send(ingress, prepare, **asked))
        await settle()
    assert await ended(*sent) == ["ok"] * 4
    bodies = [call.envelope.body for call in ingress.transport.calls[-2:]]
    assert [b'"max_completion_tokens": 8' in body for body in bodies] == [True, False]


def test_operations_of_small_models_wait_by_their_total_deadline(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    async def main() -> None:
        ingress = ingress_at([Sleep(1), ANSWER], [Sleep(1), ANSWER])
        ingress.fleet.update([post("emb@1.0.0", Kind.EMBEDDER, slots=1)])
        first = send(ingress, prepare, operation=Operation.EMBED)
        await settle()
        second = send(ingress, prepare, operation=Operation.EMBED)
        assert await ended(first, second) == ["ok", "ok"]
        nothing_stays(ingress)

    run_virtual(main())
