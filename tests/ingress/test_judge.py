"""Which answers are judged, and what becomes of the verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from modelyard.contract.envelope import Failure, Item
from modelyard.contract.errors import ReplicaFailed
from modelyard.ingress import judge_queue
from modelyard.ingress.judge_queue import MAX_WAITING, WORKERS
from modelyard.ingress.shadow_pair import MAX_ANSWER_BYTES
from modelyard.testing.scripted_transport import Sleep, Step
from modelyard.testing.shadow_world import (
    CANDIDATE,
    JUDGE,
    ROLLOUT,
    STABLE,
    ShadowWorld,
    chat_answer,
    chat_chunk,
    settle,
)
from modelyard.testing.virtual_time import run_virtual

GOOD, BAD = [chat_answer("yes")], [chat_answer("no")]
ANSWER = [chat_answer("an answer")]


def world_of(
    judge: Sequence[Step],
    *,
    stable: Sequence[Step] = ANSWER,
    candidate: Sequence[Step] = ANSWER,
    share: float = 100.0,
    **options: Any,
) -> ShadowWorld:
    plan = {"judge": {"model": "judge", "sample_percent": share}}
    return ShadowWorld(stable, candidate, judge=judge, **({"plan": plan} | options))


@pytest.mark.parametrize(("weight", "arm"), [(0.0, "stable"), (100.0, "canary")])
async def test_an_answer_of_either_arm_is_judged_under_the_nonce_of_its_id(
    weight: float, arm: str
) -> None:
    world = world_of(GOOD, percent=0.0, weight=weight)
    prepared = world.request()
    await world.answered(prepared)
    await settle()
    (judgement,) = world.judgements()
    assert (judgement.rollout, judgement.arm, judgement.good) == (ROLLOUT, arm, True)
    assert (judgement.source, judgement.pair) == ("judge", "")
    assert judgement.conversation == prepared.record.conversation[:12] != ""
    nonce = world.pipeline.answer_of(prepared.record.answer_id, "alpha").nonce
    assert judgement.unit == nonce.hex()
    assert world.judge.counts == {("chat", "good"): 1}


async def test_a_stream_is_judged_as_a_whole() -> None:
    stable = [chat_chunk("an "), chat_chunk("answer", last=True)]
    world = world_of(BAD, stable=stable, percent=0.0, weight=0.0)
    await world.ask(stream=True)
    await settle()
    (judgement,) = world.judgements()
    assert judgement.good is False
    (call,) = world.transport.calls_of(JUDGE)
    assert b"an answer" in call.envelope.body


async def test_a_tenant_that_did_not_agree_is_not_read() -> None:
    world = world_of(GOOD, percent=100.0, judged=False)
    await world.ask(request_id="q-1")
    world.publish(0.0, weight=0.0)
    await world.ask(request_id="q-2")
    await settle()
    assert world.transport.calls_of(JUDGE) == []
    assert not world.judge.counts


async def test_what_failed_is_not_judged() -> None:
    failing: list[Step] = [ReplicaFailed("broken", reason="engine")]
    world = world_of(GOOD, stable=failing, percent=0.0, weight=0.0)
    with pytest.raises(ReplicaFailed):
        await world.ask()
    await settle()
    assert not world.judge.counts


async def test_an_answer_of_another_version_than_was_drawn_is_not_judged() -> None:
    unsupported = Failure("invalid_request", "no", wire_code="unsupported")
    world = world_of(GOOD, stable=[unsupported], percent=0.0, weight=50.0)
    requests = (world.request(request_id=f"q-{number}") for number in range(99))
    prepared = next(one for one in requests if one.target.arm == "stable")
    assert await world.answered(prepared) == ANSWER
    await settle()
    assert not world.judge.counts


async def test_several_choices_are_no_one_answer_to_judge() -> None:
    world = world_of(GOOD, percent=0.0, weight=0.0)
    await world.ask(n=2)
    await settle()
    assert not world.judge.counts


async def test_without_a_judge_in_the_plan_nothing_is_read() -> None:
    world = world_of(GOOD, percent=0.0, weight=0.0, plan={})
    await world.ask()
    await settle()
    assert not world.judge.counts


async def test_both_arms_are_sampled_alike() -> None:
    counts = []
    for weight in (0.0, 100.0):
        world = world_of(GOOD, share=25.0, percent=0.0, weight=weight)
        for number in range(200):
            await world.ask(request_id=f"q-{number}")
            await settle()
        counts.append(world.judge.counts["chat", "good"])
    assert all(25 <= count <= 75 for count in counts)  # 50 expected, four standard deviations


async def test_a_shadow_pair_is_judged_on_both_sides() -> None:
    world = world_of(GOOD)
    await world.ask()
    await settle()
    one, other = world.judgements()
    assert (one.arm, other.arm) == ("stable", "shadow")
    assert one.pair == other.pair == world.pairs()[0].pair != ""
    assert one.unit != other.unit
    assert world.judge.counts == {("chat", "good"): 2}


async def test_half_a_pair_is_not_judged() -> None:
    world = world_of(GOOD, candidate=[ReplicaFailed("broken", reason="engine")])
    await world.ask()
    await settle()
    assert world.judgements() == []
    assert world.transport.calls_of(JUDGE) == []


async def test_a_pair_with_one_verdict_is_dropped() -> None:
    world = world_of(GOOD, candidate=[Item(b"garbage", 1, chat_answer("x").final)])
    await world.ask()
    await settle()
    assert world.judgements() == []
    assert world.judge.counts == {("chat", "no_verdict"): 2}


def test_what_cannot_wait_is_dropped_and_no_user_waits_for_it() -> None:
    async def main() -> None:
        world = world_of([Sleep(10.0), *GOOD], percent=0.0, weight=0.0)
        for number in range(MAX_WAITING + WORKERS + 5):
            await world.ask(request_id=f"q-{number}")
            await settle()
        assert asyncio.get_running_loop().time() == 0
        assert world.judge.counts == {("chat", "dropped"): 5}
        world.judge.close()
        await settle()

    run_virtual(main())


async def test_bytes_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_queue, "MAX_WAITING_BYTES", 100)
    world = world_of(GOOD, percent=0.0, weight=0.0)
    await world.ask()
    await settle()
    assert world.judge.counts == {("chat", "dropped"): 1}


async def test_an_answer_that_is_too_long_to_keep_is_not_judged() -> None:
    long = chat_answer("x" * (MAX_ANSWER_BYTES + 1))
    world = world_of(GOOD, stable=[long], percent=0.0, weight=0.0)
    await world.ask()
    await settle()
    assert world.judge.counts == {("chat", "too_long"): 1}


async def test_nothing_is_kept_once_it_is_judged() -> None:
    world = world_of(GOOD, percent=0.0, weight=0.0)
    prepared = world.request()
    await world.answered(prepared)
    await settle()
    assert world.judge.counts == {("chat", "good"): 1}
    taps, prepared.taps = prepared.taps, None
    assert taps is not None
    del taps
    workers = [task for task in asyncio.all_tasks() if "_judge_on" in repr(task.get_coro())]
    assert len(workers) == WORKERS
    held = [frame.f_locals for task in workers for frame in task.get_stack()]
    assert all("waiting" not in names for names in held)
    assert world.judge._queue._bytes == 0


async def test_a_bug_ends_no_worker_and_shows_no_prompt(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a private question")

    world = world_of(GOOD, percent=0.0, weight=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(judge_queue, "question_of", broken)
        for number in range(WORKERS + 1):
            await world.ask(request_id=f"q-{number}")
        await settle()
    await world.ask(request_id="later")
    await settle()
    assert world.judge.counts == {("chat", "bug"): WORKERS + 1, ("chat", "good"): 1}
    assert "private" not in caplog.text


async def test_an_ingress_that_closes_judges_no_more() -> None:
    world = world_of(GOOD, percent=0.0, weight=0.0)
    await world.ask(request_id="q-1")
    await settle()
    world.judge.close()
    await settle()
    await world.ask(request_id="q-2")
    await settle()
    assert world.judge.counts == {("chat", "good"): 1}


@pytest.fixture
async def hook() -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """The URL of a service that finds every answer bad, and what it was asked."""
    asked: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(await request.json())
        return web.json_response({"score": 0.2})

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}/", asked
    await runner.cleanup()


async def test_a_hook_is_asked_over_http_and_knows_no_arm(
    hook: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = hook
    plan = {"judge": {"url": url, "sample_percent": 100}}
    world = world_of([], percent=0.0, weight=100.0, plan=plan)
    judged = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(world.pipeline.outcomes, "judge", judged.set_result)
    assert await world.ask() == ANSWER
    async with asyncio.timeout(30), aclosing(world.hook):
        judgement = await judged
    assert (judgement.arm, judgement.good) == ("canary", False)
    assert asked[0]["answer"] == "an answer"
    assert not any(word in str(asked) for word in ("canary", STABLE, CANDIDATE, "alpha"))
    world.judge.close()
    await settle()


async def test_an_ingress_that_ends_closes_what_it_asked_the_hook_with() -> None:
    world = world_of(GOOD, percent=0.0, weight=0.0)
    closed = asyncio.Event()

    async def aclose() -> None:
        closed.set()

    world.hook.aclose = aclose  # type: ignore[method-assign]
    await world.ask()
    await settle()
    assert not closed.is_set()
    world.judge.close()
    await settle()
    assert closed.is_set()
