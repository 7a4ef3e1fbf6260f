"""Copies to a candidate: which requests, how they are sent, and what is reported of both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from modelyard.config.overload import Overload
from modelyard.contract.envelope import Failure
from modelyard.contract.errors import ReplicaFailed
from modelyard.contract.operations import Kind
from modelyard.ingress.shadow import MAX_COPIES
from modelyard.ingress.shadow_copy import candidate_of
from modelyard.ingress.shadow_metrics import ShadowMetrics
from modelyard.lifecycle.report import Post
from modelyard.routing.arms import bucket
from modelyard.tenancy.claim import verify
from modelyard.testing.in_memory import BETA_KEY, EVALUATOR_KEY, SECRET, post
from modelyard.testing.scripted_transport import End, Sleep, Step
from modelyard.testing.shadow_world import (
    CANDIDATE,
    ROLLOUT,
    STABLE,
    ShadowWorld,
    chat_answer,
    chat_chunk,
    settle,
)
from modelyard.testing.virtual_time import run_virtual

YES, NO = [chat_answer("yes")], [chat_answer("no", 5)]


async def test_a_copy_is_sent_in_the_lowest_band_with_the_same_work_and_an_id_of_its_own() -> None:
    world = ShadowWorld(YES, NO)
    traceparent = f"00-{'a' * 32}-{'b' * 16}-01"
    (item,) = await world.ask(request_id="q-1", headers={"traceparent": traceparent})
    await settle()
    assert item == YES[0]
    (sent,), (copy,) = world.transport.calls_of(STABLE), world.transport.calls_of(CANDIDATE)
    assert copy.envelope.body == sent.envelope.body
    assert copy.envelope.band == "shadow"
    assert copy.envelope.request_id == "q-1-shadow"
    assert copy.envelope.answer_id != sent.envelope.answer_id
    assert (sent.envelope.traceparent, copy.envelope.traceparent) == (traceparent, None)
    claim, original = verify(copy.envelope.claim, SECRET), verify(sent.envelope.claim, SECRET)
    assert (claim.tenant, claim.region, claim.priority) == ("alpha", "eu", "shadow")
    assert (claim.models, claim.arms) == (original.models, original.arms)


async def test_a_copy_is_in_the_log_and_in_nobodys_quota_usage_or_books() -> None:
    world = ShadowWorld(YES, NO)
    await world.ask(request_id="q-1")
    await settle()
    (copy,) = world.copies
    assert (copy.arm, copy.purpose, copy.version) == ("shadow", "shadow", CANDIDATE)
    assert (copy.tenant, copy.key_id, copy.pair) == ("alpha", "alpha-1", world.pairs()[0].pair)
    assert (copy.request_id, copy.status, copy.output_tokens) == ("q-1-shadow", 200, 5)
    assert [record.version for record in world.ingress.records] == [STABLE]
    assert copy.reserved_tokens is None
    assert world.pipeline.demand.in_flight == ()


async def test_both_outcomes_are_reported_as_one_pair() -> None:
    world = ShadowWorld(YES, NO)
    await world.ask()
    await settle()
    stable, copy = world.pairs()
    assert (stable.arm, copy.arm) == ("stable", "shadow")
    assert stable.pair == copy.pair != ""
    assert (stable.rollout, stable.tier) == (copy.rollout, copy.tier) == (ROLLOUT, "paid")
    assert stable.conversation == copy.conversation != ""
    assert (stable.output_tokens, copy.output_tokens) == (2, 5)
    assert (stable.failed, copy.failed) == (False, False)
    assert (stable.ttft_s, copy.ttft_s) == (None, None)  # nothing was streamed
    assert None not in (stable.e2e_s, copy.e2e_s)


@pytest.mark.parametrize(
    ("body", "candidate", "match"),
    [
        ({"temperature": 0}, YES, True),
        ({"temperature": 0}, NO, False),
        ({"temperature": 0.7}, YES, None),
        ({}, YES, None),
    ],
)
async def test_only_greedy_answers_can_match(
    body: dict[str, Any], candidate: Sequence[Step], match: bool | None
) -> None:
    world = ShadowWorld(YES, candidate)
    await world.ask(**body)
    await settle()
    stable, copy = world.pairs()
    assert (stable.match, copy.match) == (None, match)


def test_latencies_run_from_dispatch_on_both_sides() -> None:
    async def main() -> None:
        stable: list[Step] = [Sleep(0.2), chat_chunk("a"), Sleep(0.3), chat_chunk("b", last=True)]
        candidate: list[Step] = [
            Sleep(0.4),
            chat_chunk("a"),
            Sleep(0.6),
            chat_chunk("b", last=True),
        ]
        world = ShadowWorld(stable, candidate)
        prepared = world.request(stream=True)
        await asyncio.sleep(5)  # it waited for a slot, as users do
        await world.answered(prepared)
        await asyncio.sleep(1)
        one, copy = world.pairs()
        assert [one.ttft_s, one.e2e_s] == pytest.approx([0.2, 0.5])
        assert [copy.ttft_s, copy.e2e_s] == pytest.approx([0.4, 1.0])

    run_virtual(main())


async def test_a_weight_of_zero_copies_as_no_weight_does() -> None:
    world = ShadowWorld(YES, NO, weight=0.0)
    await world.ask()
    await settle()
    assert len(world.pairs()) == 2


async def test_without_a_word_of_control_nothing_is_copied() -> None:
    world = ShadowWorld(YES, NO, percent=0.0, weight=0.0)
    await world.ask()
    await settle()
    assert world.transport.calls_of(CANDIDATE) == []
    assert not world.shadow.counts


async def test_requests_of_the_canary_and_of_those_outside_the_rollout_are_not_copied() -> None:
    on_canary = ShadowWorld(YES, NO, weight=100.0)
    await on_canary.ask()
    outside = ShadowWorld(YES, NO, plan={"tenants": ["beta"]})
    await outside.ask()
    named = ShadowWorld(YES, NO)
    await named.ask(key=EVALUATOR_KEY, model=STABLE)
    await settle()
    assert len(on_canary.transport.calls) == len(outside.transport.calls) == 1
    assert len(named.transport.calls) == 1


async def test_tenants_of_the_rollout_are_copied() -> None:
    world = ShadowWorld(YES, NO, plan={"tenants": ["beta"]})
    await world.ask(key=BETA_KEY)
    await settle()
    assert len(world.transport.calls_of(CANDIDATE)) == 1


async def test_the_share_of_conversations_is_copied_and_always_the_same_ones() -> None:
    def copied(world: ShadowWorld) -> set[str]:
        calls = world.transport.calls_of(CANDIDATE)
        return {call.envelope.request_id.removesuffix("-shadow") for call in calls}

    async def asked(percent: float) -> ShadowWorld:
        world = ShadowWorld(YES, NO, percent=percent)
        for number in range(300):
            await world.ask(request_id=f"q-{number}")
            await settle()
        return world

    some, again, more = await asked(20), await asked(20), await asked(40)
    assert copied(some) == copied(again) < copied(more)
    assert 40 <= len(copied(some)) <= 80  # 60 expected, three standard deviations


async def test_the_sample_is_another_draw_than_the_rollouts() -> None:
    """Or the first to get the canary would be those that were copied before."""
    world = ShadowWorld(YES, NO, percent=50)
    for number in range(60):
        await world.ask(request_id=f"q-{number}")
        await settle()
    copied = {record.conversation for record in world.copies}
    every = {record.conversation for record in world.ingress.records}
    on_canary = {one for one in every if bucket(ROLLOUT, "alpha", one) < 0.5}
    assert 0 < len(copied & on_canary) < len(copied)


@pytest.mark.parametrize("there", [[], [post(CANDIDATE, Kind.CLASSIFIER)]])
async def test_a_candidate_that_is_not_ready_or_of_another_kind_gets_no_copy(
    there: list[Post],
) -> None:
    world = ShadowWorld(YES, NO)
    world.ingress.fleet.update([post(STABLE), *there])
    await world.ask()
    await settle()
    assert world.transport.calls_of(CANDIDATE) == []
    assert world.shadow.counts == {(CANDIDATE, "not_ready"): 1}


async def test_what_overload_does_for_users_is_not_done_for_copies() -> None:
    world = ShadowWorld(YES, NO, overload={"order": "shortest", "fallback": "small@1.0.0"})
    candidate = candidate_of(world.request(), world.pipeline)
    assert candidate is not None
    assert candidate.route.overload == Overload()


def test_no_copy_begins_while_users_wait_for_the_stable_version() -> None:
    async def main() -> None:
        world = ShadowWorld([Sleep(0.05), *YES], NO, slots=1)
        asked = (world.ask(request_id=f"q-{number}") for number in range(2))
        await asyncio.gather(*asked)
        await settle()
        assert world.shadow.counts == {(CANDIDATE, "shed"): 1, (CANDIDATE, "answered"): 1}
        (copy,) = world.transport.calls_of(CANDIDATE)
        assert copy.envelope.request_id == "q-1-shadow"  # behind it nobody waited

    run_virtual(main())


def test_a_copy_that_has_answered_is_in_nobodys_way() -> None:
    async def main() -> None:
        world = ShadowWorld([Sleep(1.0), *YES], NO, slots=1)
        first = asyncio.create_task(world.ask(request_id="q-1"))
        await settle()
        second = asyncio.create_task(world.ask(request_id="q-2"))
        await asyncio.gather(first, second)
        await settle()
        assert world.shadow.counts == {(CANDIDATE, "answered"): 2}

    run_virtual(main())


async def test_a_request_that_the_other_arm_answered_is_no_pair() -> None:
    unsupported = Failure("invalid_request", "no", wire_code="unsupported")
    world = ShadowWorld([unsupported], YES, weight=50.0)
    requests = (world.request(request_id=f"q-{number}") for number in range(99))
    prepared = next(one for one in requests if one.target.arm == "stable")
    assert await world.answered(prepared) == YES
    assert prepared.record.version == CANDIDATE
    await settle()
    assert world.shadow.counts == {(CANDIDATE, "moved"): 1}
    assert world.pairs() == []


def test_a_copy_never_waits_for_a_slot() -> None:
    async def main() -> None:
        world = ShadowWorld([Sleep(1.0), *YES], [Sleep(100.0), *NO], slots=2)
        asked = [asyncio.create_task(world.ask(request_id=f"q-{n}")) for n in range(2)]
        await settle()
        assert len(world.transport.calls_of(CANDIDATE)) == 2
        await asyncio.gather(*asked)
        await world.ask(request_id="q-3")
        await settle()
        assert world.shadow.counts[CANDIDATE, "shed"] == 1
        assert len(world.transport.calls_of(CANDIDATE)) == 2
        world.shadow.close()
        await settle()

    run_virtual(main())


def test_a_copy_is_cut_as_soon_as_somebody_waits_for_its_slot() -> None:
    async def main() -> None:
        world = ShadowWorld(YES, [Sleep(5.0), *NO], slots=1)
        await world.ask(request_id="q-1")
        await settle()
        user = world.request(request_id="q-2", key=EVALUATOR_KEY, model=CANDIDATE)
        await world.answered(user)
        assert world.pipeline.now() == pytest.approx(5.1)  # cut at the first look
        copy, real = world.transport.calls_of(CANDIDATE)
        assert (copy.end, real.end) == (End.CANCELLED, End.COMPLETE)
        assert world.shadow.counts == {(CANDIDATE, "shed"): 1}
        assert world.pairs() == []

    run_virtual(main())


def test_copies_are_bounded() -> None:
    async def main() -> None:
        world = ShadowWorld(YES, [Sleep(5.0), *NO])
        for number in range(MAX_COPIES + 3):
            await world.ask(request_id=f"q-{number}")
        await settle()
        assert len(world.transport.calls_of(CANDIDATE)) == MAX_COPIES
        assert world.shadow.counts[CANDIDATE, "busy"] == 3
        await asyncio.sleep(6)
        await world.ask(request_id="later")
        await settle()
        assert len(world.transport.calls_of(CANDIDATE)) == MAX_COPIES + 1
        world.shadow.close()
        await settle()

    run_virtual(main())


async def test_a_copy_ends_with_the_request_that_its_caller_left() -> None:
    hold = asyncio.Event()
    world = ShadowWorld([chat_chunk("a"), hold], [chat_chunk("a"), hold])
    async with aclosing(world.pipeline.stream(world.request(stream=True))) as items:
        await anext(items)
        await settle()
    await settle()
    (copy,) = world.transport.calls_of(CANDIDATE)
    assert copy.stopped
    assert world.shadow.counts == {(CANDIDATE, "left"): 1}
    assert world.pairs() == []


async def test_a_request_that_failed_is_one_half_of_a_pair() -> None:
    world = ShadowWorld([ReplicaFailed("broken", reason="engine")], YES)
    with pytest.raises(ReplicaFailed):
        await world.ask()
    await settle()
    stable, copy = world.pairs()
    assert (stable.failed, stable.code, stable.e2e_s) == (True, "replica_failed", None)
    assert (copy.failed, copy.match) == (False, None)


async def test_an_ingress_that_closes_cuts_its_copies_and_begins_no_more() -> None:
    world = ShadowWorld(YES, [asyncio.Event(), *NO])
    await world.ask(request_id="q-1")
    await settle()
    world.shadow.close()
    await settle()
    await world.ask(request_id="q-2")
    await settle()
    (copy,) = world.transport.calls_of(CANDIDATE)
    assert copy.stopped
    assert world.shadow.counts == {(CANDIDATE, "closed"): 1}


async def test_what_became_of_copies_is_exported() -> None:
    world = ShadowWorld(YES, NO)
    await world.ask()
    await settle()
    copies, judged = ShadowMetrics(world.shadow, world.judge).collect()
    (sample,) = copies.samples
    assert sample.labels == {"version": CANDIDATE, "reason": "answered"}
    assert (sample.name, sample.value) == ("modelyard_shadow_copies_total", 1)
    assert judged.samples == []
