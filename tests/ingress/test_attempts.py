"""A replica that dies under a request: one retry before the first item, and then an error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from modelyard.admission.suspects import CROWD, KEPT_S
from modelyard.contract.envelope import Item
from modelyard.contract.errors import Overloaded, ReplicaDied, ReplicaFailed
from modelyard.contract.operations import Operation
from modelyard.contract.render_error import headers_for
from modelyard.ingress.prepared import Prepared
from modelyard.testing.in_memory import BETA_KEY, VERSIONS, InMemoryIngress, post
from modelyard.testing.scripted_transport import ScriptedTransport

Prepare = Callable[..., Prepared]
DEATH = ReplicaDied("the replica died", replica="a")
DEATH_OF_ANOTHER = ReplicaDied("the replica died", replica="b")


async def streamed(ingress: InMemoryIngress, prepared: Prepared) -> list[Item]:
    async with aclosing(ingress.pipeline.stream(prepared)) as items:
        return [item async for item in items]


async def test_a_unary_request_is_sent_once_more(prepare: Prepare, unary: Item) -> None:
    ingress = InMemoryIngress([DEATH], [unary])
    assert await ingress.pipeline.call(prepare(ingress.pipeline)) == unary
    (record,) = ingress.records
    assert (record.status, record.attempt) == (200, 2)


async def test_a_stream_is_sent_once_more_before_its_first_item(
    prepare: Prepare, first: Item, last: Item
) -> None:
    ingress = InMemoryIngress([DEATH], [first, last])
    assert await streamed(ingress, prepare(ingress.pipeline, stream=True)) == [first, last]
    (record,) = ingress.records
    assert (record.status, record.attempt, record.output_tokens) == (200, 2, 2)


async def test_the_second_attempt_has_the_same_id_and_says_that_it_is_the_second(
    prepare: Prepare, unary: Item
) -> None:
    ingress = InMemoryIngress([DEATH], [unary])
    await ingress.pipeline.call(prepare(ingress.pipeline))
    one, two = (call.envelope for call in ingress.transport.calls)
    assert (one.answer_id, one.attempt, two.attempt) == (two.answer_id, 1, 2)
    assert two.budget_ms <= one.budget_ms


async def test_the_second_attempt_goes_to_another_cell(prepare: Prepare, unary: Item) -> None:
    ingress = InMemoryIngress([DEATH], [unary])
    ingress.fleet.update([post("gen@1.0.0"), post("gen@1.0.0--b")])
    await ingress.pipeline.call(prepare(ingress.pipeline))
    assert [call.cell.app for call in ingress.transport.calls] == ["gen@1.0.0", "gen@1.0.0--b"]


async def test_a_stream_that_has_begun_is_never_sent_again(prepare: Prepare, first: Item) -> None:
    ingress = InMemoryIngress([first, first, DEATH])
    with pytest.raises(ReplicaFailed) as caught:
        await streamed(ingress, prepare(ingress.pipeline, stream=True))
    assert caught.value.retryable
    (record,) = ingress.records
    assert (record.reason, record.output_tokens, record.attempt) == ("replica_died", 2, 1)


@pytest.mark.parametrize("items", [0, 1])
async def test_a_request_under_which_two_replicas_died_is_refused_from_then_on(
    prepare: Prepare, first: Item, unary: Item, items: int
) -> None:
    ingress = InMemoryIngress([DEATH], [*[first] * items, DEATH_OF_ANOTHER], [unary])
    with pytest.raises(ReplicaFailed) as caught:
        await streamed(ingress, prepare(ingress.pipeline, stream=True))
    assert headers_for(caught.value)["x-should-retry"] == "false"
    with pytest.raises(ReplicaFailed, match="ten minutes"):
        prepare(ingress.pipeline, stream=True)
    assert await ingress.pipeline.call(prepare(ingress.pipeline, temperature=0.5)) == unary


async def test_the_refusal_ends_after_ten_minutes(prepare: Prepare, unary: Item) -> None:
    clock = [1000.0]
    ingress = InMemoryIngress([DEATH], [DEATH_OF_ANOTHER], [unary], now=lambda: clock[0])
    with pytest.raises(ReplicaFailed):
        await ingress.pipeline.call(prepare(ingress.pipeline))
    clock[0] += KEPT_S - 1
    with pytest.raises(ReplicaFailed):
        prepare(ingress.pipeline)
    clock[0] += 1
    assert await ingress.pipeline.call(prepare(ingress.pipeline)) == unary


async def test_another_tenants_same_question_is_not_refused(prepare: Prepare, unary: Item) -> None:
    ingress = InMemoryIngress([DEATH], [DEATH_OF_ANOTHER], [unary])
    with pytest.raises(ReplicaFailed):
        await ingress.pipeline.call(prepare(ingress.pipeline, Operation.EMBED))
    theirs = prepare(ingress.pipeline, Operation.EMBED, key=BETA_KEY)
    assert await ingress.pipeline.call(theirs) == unary


async def test_what_the_whole_fleet_refuses_is_refused_here(prepare: Prepare) -> None:
    elsewhere = InMemoryIngress([DEATH], [DEATH_OF_ANOTHER])
    with pytest.raises(ReplicaFailed):
        await elsewhere.pipeline.call(prepare(elsewhere.pipeline))
    here = InMemoryIngress()
    here.pipeline.attempts.suspects.merge(elsewhere.pipeline.attempts.suspects.deaths())
    with pytest.raises(ReplicaFailed, match="ten minutes"):
        prepare(here.pipeline)


@pytest.mark.parametrize(
    "error",
    [
        ReplicaFailed("cancelled inside the cluster", reason="cancelled"),
        Overloaded("full", reason="queue_full", retry_after_s=1),
    ],
)
async def test_what_is_no_death_is_not_sent_again(prepare: Prepare, error: Exception) -> None:
    ingress = InMemoryIngress([error], [error])
    with pytest.raises(type(error)):
        await ingress.pipeline.call(prepare(ingress.pipeline))
    assert len(ingress.transport.calls) == 1


@pytest.mark.parametrize(("replicas", "attempts"), [(1, 1), (2, 2)])
async def test_a_retry_waits_for_a_new_replica_only_if_it_can_be_up_in_time(
    prepare: Prepare, first: Item, last: Item, replicas: int, attempts: int
) -> None:
    """first_token_s is 10: a stream cannot wait for a model that takes 25 s to load."""
    ingress = InMemoryIngress([DEATH], [first, last])
    ingress.fleet.update([post("gen@1.0.0", load_s=25.0)] * replicas)
    prepared = prepare(ingress.pipeline, stream=True)
    if attempts == 1:
        with pytest.raises(ReplicaFailed) as caught:
            await streamed(ingress, prepared)
        assert headers_for(caught.value)["Retry-After"] == "25"
    else:
        await streamed(ingress, prepared)
    assert ingress.records[0].attempt == attempts


async def test_a_unary_request_waits_as_long_as_its_total_deadline(
    prepare: Prepare, unary: Item
) -> None:
    ingress = InMemoryIngress([DEATH], [unary])
    ingress.fleet.update([post("gen@1.0.0", load_s=25.0)])
    assert await ingress.pipeline.call(prepare(ingress.pipeline)) == unary


async def test_without_a_second_replica_the_same_question_is_refused_at_its_next_death(
    prepare: Prepare,
) -> None:
    """No retry is made, since none can be up in time; the caller asks again and kills the next."""
    ingress = InMemoryIngress([DEATH], [DEATH_OF_ANOTHER])
    ingress.fleet.update([post("gen@1.0.0", load_s=25.0)])
    for retryable in (True, False):
        with pytest.raises(ReplicaFailed) as caught:
            await streamed(ingress, prepare(ingress.pipeline, stream=True))
        assert caught.value.retryable is retryable
    with pytest.raises(ReplicaFailed, match="ten minutes"):
        prepare(ingress.pipeline, stream=True)


async def test_a_stream_in_its_middle_counts_as_well(prepare: Prepare, first: Item) -> None:
    ingress = InMemoryIngress([first, DEATH], [first, DEATH_OF_ANOTHER])
    for _ in range(2):
        with pytest.raises(ReplicaFailed) as caught:
            await streamed(ingress, prepare(ingress.pipeline, stream=True))
    assert caught.value.reason == "digest_refused"


async def test_another_conversation_about_the_same_does_not_evade_it(prepare: Prepare) -> None:
    ingress = InMemoryIngress([DEATH], [DEATH_OF_ANOTHER])
    with pytest.raises(ReplicaFailed):
        await ingress.pipeline.call(prepare(ingress.pipeline, Operation.GENERATE))
    with pytest.raises(ReplicaFailed, match="ten minutes"):
        prepare(ingress.pipeline, Operation.GENERATE, conversation_id="c-2", deadline_ms=5000)


async def test_a_crowd_that_died_twice_may_come_a_third_time(prepare: Prepare) -> None:
    """All but one of them only stood beside the one that kills."""
    crowd = CROWD + 1
    scripts: list[list[Any]] = [[DEATH]] * crowd + [[DEATH_OF_ANOTHER]] * crowd
    ingress = InMemoryIngress(transport=ScriptedTransport(*scripts))
    ingress.fleet.update([post("gen@1.0.0", load_s=100.0)])  # so that each is sent once
    for _ in range(2):
        for number in range(crowd):
            with pytest.raises(ReplicaFailed):
                await ingress.pipeline.call(prepare(ingress.pipeline, seed=number))
    ingress.transport.expect([ReplicaDied("the replica died", replica="c")])
    with pytest.raises(ReplicaFailed) as caught:
        await ingress.pipeline.call(prepare(ingress.pipeline, seed=0))
    assert caught.value.reason == "digest_refused"
    prepare(ingress.pipeline, seed=1)


async def test_a_fleet_that_keeps_dying_is_not_sent_everything_twice(prepare: Prepare) -> None:
    asked = 400
    scripts: list[list[Any]] = [
        [ReplicaDied("the replica died", replica=f"r-{number}")] for number in range(2 * asked)
    ]
    ingress = InMemoryIngress(transport=ScriptedTransport(*scripts))
    ingress.fleet.update(post(version, kind) for version, kind in VERSIONS.values())
    for number in range(asked):
        with pytest.raises(ReplicaFailed):
            await ingress.pipeline.call(prepare(ingress.pipeline, seed=number))
    retries = len(ingress.transport.calls) - asked
    assert 50 <= retries <= 50 + 0.1 * asked
    assert ingress.records[-1].reason in ("retry_budget", "digest_refused")
