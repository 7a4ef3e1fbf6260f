"""Whatever becomes of a copy, the request that it copies goes its way."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.contract.envelope import Failure, Item, Usage
from modelyard.contract.errors import InvalidRequest, Overloaded, ReplicaDied, RequestError
from modelyard.ingress import shadow
from modelyard.testing.scripted_transport import Sleep, Step
from modelyard.testing.shadow_world import (
    CANDIDATE,
    STABLE,
    ShadowWorld,
    chat_answer,
    chat_chunk,
    settle,
)
from modelyard.testing.virtual_time import run_virtual

YES = [chat_answer("yes")]
GARBAGE = Item(b"\xff{[", 3, Usage(1, 3))
DIED = ReplicaDied("gone", replica="r-9")
BROKEN: list[Step] = [
    DIED,
    RuntimeError("a bug of the replica"),
    Failure("internal", "broken"),
    Failure("overloaded", "full"),
    Failure("invalid_request", "too long", wire_code="context_length_exceeded"),
    Failure("invalid_request", "no", wire_code="unsupported"),
    GARBAGE,
    Item(b"", 0),
    Sleep(1000.0),
    Sleep(3.0),
    chat_chunk("a"),
    chat_chunk("b", last=True),
    chat_answer("yes"),
    asyncio.CancelledError(),
]
steps = st.lists(st.sampled_from(BROKEN), max_size=4)


def users_view(candidate: list[Step] | None, *, stream: bool, close_at: float | None) -> Any:
    """What a user gets, when, and what the books say; None: no copy is sent."""

    async def main() -> Any:
        stable: list[Step] = [Sleep(0.5), chat_chunk("a"), Sleep(0.5), chat_chunk("b", last=True)]
        if not stream:
            stable = [Sleep(0.5), *YES]
        # A replica that ends without an answer; for a unary call the script must hold one.
        script = [*(candidate or []), chat_answer("yes")]
        world = ShadowWorld(stable, script, percent=0.0 if candidate is None else 100.0)
        loop = asyncio.get_running_loop()
        if close_at is not None:
            loop.call_at(close_at, world.shadow.close)
        items = await world.ask(stream=stream, temperature=0)
        (record,) = world.ingress.records
        at = round(loop.time(), 6)  # a clock of many timers is a sum of roundings
        view = (items, at, record.status, record.code, record.duration_ms, record.attempt)
        await asyncio.sleep(200)  # every deadline of the copy has passed
        assert not [task for task in asyncio.all_tasks() if "shadow" in repr(task.get_coro())]
        lanes = world.pipeline.turnstile.lanes
        assert lanes.queue(CANDIDATE).in_flight == lanes.queue(STABLE).in_flight == 0
        assert not world.pipeline.attempts.suspects
        assert len(world.pairs()) in (0, 2)
        return view

    return run_virtual(main())


@given(candidate=steps, stream=st.booleans(), close_at=st.none() | st.sampled_from([0.0, 0.6, 2]))
@settings(max_examples=60, deadline=None)
def test_a_user_gets_the_same_at_the_same_time_whatever_the_copy_does(
    candidate: list[Step], stream: bool, close_at: float | None
) -> None:
    logging.disable(logging.CRITICAL)
    try:
        with_copy = users_view(candidate, stream=stream, close_at=close_at)
        assert with_copy == users_view(None, stream=stream, close_at=None)
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("step", "failed", "code"),
    [
        (DIED, True, "replica_failed"),
        (Failure("internal", "broken"), True, "internal"),
        (chat_chunk("no last item"), True, "replica_failed"),
    ],
)
async def test_what_the_candidate_does_wrong_is_its_own_outcome(
    step: Step, failed: bool, code: str
) -> None:
    world = ShadowWorld(YES, [step])
    await world.ask()
    await settle()
    found = [(one.failed, one.refused, one.code) for one in world.pairs()]
    assert found == [(False, False, "ok"), (failed, False, code)]
    assert world.shadow.counts == {(CANDIDATE, "failed"): 1}


REFUSED = Failure("invalid_request", "no")


@pytest.mark.parametrize(
    ("stable", "candidate", "refused", "word"),
    [
        (YES, [REFUSED], [False, True], "refused"),
        ([REFUSED], YES, [True, False], "answered"),
        ([REFUSED], [REFUSED], [True, True], "refused"),
    ],
)
async def test_a_4xx_of_a_replica_is_half_of_a_pair(
    stable: list[Step], candidate: list[Step], refused: list[bool], word: str
) -> None:
    world = ShadowWorld(stable, candidate)
    with suppress(InvalidRequest):
        await world.ask(temperature=0)
    await settle()
    pairs = world.pairs()
    assert [one.refused for one in pairs] == refused
    assert [one.failed for one in pairs] == [False, False]
    assert [one.match for one in pairs] == [None, None]
    assert world.shadow.counts == {(CANDIDATE, word): 1}


SHED = [
    *(Failure("overloaded", "no room", reason=why) for why in ("engine_full", "queue_full", "x")),
    Failure("overloaded", "leaving", reason="draining"),
    Overloaded("the model's queue is full", reason="queue_full", retry_after_s=1),
    Failure("deadline_exceeded", "late", reason="expired", retryable=True),
]


@pytest.mark.parametrize("step", SHED)
async def test_a_copy_that_a_full_replica_refuses_is_shed_and_no_failure(step: Step) -> None:
    world = ShadowWorld(YES, [step])
    await world.ask()
    await settle()
    assert world.shadow.counts == {(CANDIDATE, "shed"): 1}
    assert world.pairs() == []


@pytest.mark.parametrize("step", SHED)
async def test_a_request_that_a_full_replica_refuses_is_no_pair_either(step: Step) -> None:
    """Or a full stable version would speak for the candidate."""
    world = ShadowWorld([step], YES)
    with suppress(RequestError):
        await world.ask()
    await settle()
    assert world.shadow.counts == {(CANDIDATE, "shed"): 1}
    assert world.pairs() == []


@pytest.mark.parametrize(
    "step",
    [
        Failure("deadline_exceeded", "late", reason="total"),
        Failure("replica_failed", "gone", reason="engine"),
        Failure("internal", "broken"),
    ],
)
async def test_what_fails_once_it_has_begun_is_a_failure(step: Step) -> None:
    world = ShadowWorld(YES, [step])
    await world.ask()
    await settle()
    assert [one.failed for one in world.pairs()] == [False, True]


async def test_a_copy_is_sent_once_and_to_no_other_arm() -> None:
    for step in (DIED, Failure("invalid_request", "no", wire_code="unsupported")):
        world = ShadowWorld(YES, [step])
        await world.ask()
        await settle()
        assert [call.envelope.version for call in world.transport.calls] == [STABLE, CANDIDATE]


async def test_a_body_under_which_the_candidate_dies_is_not_refused_to_its_user() -> None:
    world = ShadowWorld(YES, [DIED], slots=4)
    for _ in range(5):
        assert await world.ask(request_id="q") == YES
        await settle()
    assert len(world.transport.calls_of(CANDIDATE)) == 5


async def test_a_garbled_greedy_answer_does_not_match() -> None:
    world = ShadowWorld(YES, [GARBAGE])
    await world.ask(temperature=0)
    await settle()
    assert [one.match for one in world.pairs()] == [None, False]


def test_a_copy_that_hangs_ends_at_the_deadline_of_the_request() -> None:
    async def main() -> None:
        world = ShadowWorld(YES, [Sleep(1000.0), *YES])
        await world.ask()
        await asyncio.sleep(60.1)
        _, copy = world.pairs()
        assert (copy.code, copy.failed, copy.e2e_s) == ("deadline_exceeded", True, None)

    run_virtual(main())


async def test_a_bug_of_ours_is_logged_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a private question")

    monkeypatch.setattr(shadow, "copy_of", broken)
    world = ShadowWorld(YES, YES)
    assert await world.ask() == YES
    await settle()
    assert world.shadow.counts == {(CANDIDATE, "bug"): 1}
    assert "ZeroDivisionError at test_shadow_faults.py:" in caplog.text
    assert "private" not in caplog.text


async def test_a_bug_at_dispatch_costs_the_copy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(shadow, "candidate_of", broken)
    world = ShadowWorld(YES, YES)
    assert await world.ask() == YES
    await settle()
    assert [call.envelope.version for call in world.transport.calls] == [STABLE]
