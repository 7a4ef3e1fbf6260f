"""Places, deadlines, retries and the retry budget, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.client.calls import GRACE_S, Call, Calls, encoded
from modelyard.contract.errors import (
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    RateLimited,
    ReplicaFailed,
    RequestError,
    Unauthenticated,
)
from modelyard.contract.operations import Operation
from modelyard.contract.reply import Reply
from modelyard.testing.virtual_time import run_virtual

FULL = Overloaded("full", retry_after_s=2.0).failure()
Scripted = Callable[[list[Sequence[Any]]], Any]


def calls_over(ingress: Any, **options: Any) -> Calls:
    defaults: dict[str, Any] = {
        "max_in_flight": 4,
        "retry": RetryPolicy(max_attempts=5),
        "draw": lambda: 0.5,
    }
    return Calls(ingress, "my_key", **(defaults | options))


def call(deadline_s: float = 60.0) -> Call:
    return Call(Operation.CLASSIFY, b"{}", deadline_s)


async def received(calls: Calls, one: Call) -> tuple[list[bytes | Reply], RequestError | None]:
    """What came of a stream, and what ended it."""
    items: list[bytes | Reply] = []
    try:
        async with aclosing(calls.ask_stream(one)) as stream:
            async for item in stream:
                items.append(item)
    except RequestError as error:
        return items, error
    return items, None


def test_a_call_carries_the_key_an_id_and_what_is_left_of_its_deadline(
    scripted: Scripted, reply: Reply
) -> None:
    ingress = scripted([[FULL], [reply]])
    assert run_virtual(calls_over(ingress).ask(call(30.0))) is reply
    first, second = ingress.asked
    assert (first.key, first.operation) == ("my_key", "classify")
    assert first.headers["X-Deadline-Ms"] == "30000"
    assert second.at_s >= 2.0
    assert int(second.headers["X-Deadline-Ms"]) == int((30.0 - second.at_s) * 1000)
    assert first.headers["X-Request-Id"] == second.headers["X-Request-Id"]


def test_a_failure_is_raised_as_its_class_and_names_the_request(scripted: Scripted) -> None:
    ingress = scripted([[Unauthenticated("who are you").failure()]])
    with pytest.raises(Unauthenticated) as caught:
        run_virtual(calls_over(ingress).ask(call()))
    [asked] = ingress.asked
    assert asked.headers["X-Request-Id"] in caught.value.__notes__[0]


def test_attempts_are_bounded(scripted: Scripted) -> None:
    ingress = scripted([[FULL]])
    with pytest.raises(Overloaded):
        run_virtual(calls_over(ingress, retry=RetryPolicy(max_attempts=3)).ask(call()))
    assert len(ingress.asked) == 3


def test_a_dead_ingress_replica_is_followed_by_another_try(
    scripted: Scripted, reply: Reply
) -> None:
    ingress = scripted([[ReplicaFailed("died")], [reply]])
    assert run_virtual(calls_over(ingress).ask(call())) is reply


def test_an_ingress_that_never_answers_is_left_at_the_deadline(scripted: Scripted) -> None:
    ingress = scripted([[1000.0]])

    async def main() -> float:
        with pytest.raises(DeadlineExceeded):
            await calls_over(ingress).ask(call(5.0))
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == pytest.approx(5.0 + GRACE_S)
    assert ingress.under_way == 0


def test_calls_beyond_the_places_wait_and_their_deadline_with_them(
    scripted: Scripted, reply: Reply
) -> None:
    ingress = scripted([[10.0, reply]])

    async def main() -> list[Reply]:
        calls = calls_over(ingress, max_in_flight=3)
        return await asyncio.gather(*(calls.ask(call(15.0)) for _ in range(9)))

    assert len(run_virtual(main())) == 9
    assert ingress.most_under_way == 3
    assert {asked.headers["X-Deadline-Ms"] for asked in ingress.asked} == {"15000"}


def test_a_call_that_waits_to_be_repeated_keeps_its_place(scripted: Scripted, reply: Reply) -> None:
    ingress = scripted([[FULL], [reply]])

    async def main() -> None:
        calls = calls_over(ingress, max_in_flight=1)
        await asyncio.gather(calls.ask(call()), calls.ask(call()))

    run_virtual(main())
    ids = [asked.headers["X-Request-Id"] for asked in ingress.asked]
    assert ids == [ids[0], ids[0], ids[2], ids[2]]
    assert ids[0] != ids[2]


def test_a_broken_fleet_is_not_hammered(scripted: Scripted) -> None:
    """Retries stay under 4 places x 4 retries and a tenth of the calls; each wants 4."""
    ingress = scripted([[FULL]])

    async def main() -> None:
        calls = calls_over(ingress)
        for _ in range(200):
            with pytest.raises(Overloaded):
                await calls.ask(call())

    run_virtual(main())
    assert 216 <= len(ingress.asked) <= 200 + 16 + 20


def test_a_quota_only_slows_a_job_down(scripted: Scripted, reply: Reply) -> None:
    """Each call is refused once for its quota, and none fails: those retries cost no budget."""
    limited = RateLimited("quota", retry_after_s=6.0).failure()
    ingress = scripted([[limited], [reply]])

    async def main() -> None:
        calls = calls_over(ingress, max_in_flight=1)
        for _ in range(100):
            await calls.ask(call())

    run_virtual(main())
    assert len(ingress.asked) == 200


def test_a_job_that_is_refused_leaves_the_place_empty_for_a_while(
    scripted: Scripted, reply: Reply
) -> None:
    shed = Overloaded("full", reason="queue_full", retry_after_s=3.0).failure()
    ingress = scripted([[shed], [reply]])
    calls = calls_over(ingress, max_in_flight=1, retry=RetryPolicy(max_attempts=1))

    async def two_rows() -> float:
        with pytest.raises(Overloaded):
            await calls.ask(call())
        refused_at = asyncio.get_running_loop().time()
        assert await calls.ask(call()) is reply
        return refused_at

    assert run_virtual(two_rows()) == 0.0  # the error comes at once
    assert [asked.at_s for asked in ingress.asked] == [0.0, 3.0]


def test_a_stream_ends_with_its_reply(scripted: Scripted, reply: Reply) -> None:
    ingress = scripted([[b"a", 1.0, b"b", reply]])
    assert run_virtual(received(calls_over(ingress), call())) == ([b"a", b"b", reply], None)


def test_a_stream_is_repeated_before_its_first_item_only(scripted: Scripted, reply: Reply) -> None:
    before = scripted([[FULL], [b"a", reply]])
    assert run_virtual(received(calls_over(before), call())) == ([b"a", reply], None)
    after = scripted([[b"a", ReplicaFailed("died")], [b"a", reply]])
    items, error = run_virtual(received(calls_over(after), call()))
    assert items == [b"a"]
    assert isinstance(error, ReplicaFailed)
    assert len(after.asked) == 1


def test_a_stream_without_an_end_is_a_failure(scripted: Scripted) -> None:
    items, error = run_virtual(received(calls_over(scripted([[b"a"]])), call()))
    assert items == [b"a"]
    assert error is not None
    assert error.reason == "incomplete"


def test_a_stream_that_falls_silent_is_left_at_the_deadline(scripted: Scripted) -> None:
    ingress = scripted([[b"a", 1000.0]])
    items, error = run_virtual(received(calls_over(ingress), call(5.0)))
    assert items == [b"a"]
    assert isinstance(error, DeadlineExceeded)
    assert ingress.under_way == 0


def test_closing_a_stream_ends_it_at_the_ingress_and_frees_its_place(
    scripted: Scripted, reply: Reply
) -> None:
    ingress = scripted([[b"a", b"b", reply], [reply]])

    async def main() -> Reply:
        calls = calls_over(ingress, max_in_flight=1)
        async with aclosing(calls.ask_stream(call())) as stream:
            assert await anext(stream) == b"a"
        return await calls.ask(call())

    assert run_virtual(main()) is reply
    assert ingress.asked[0].closed


def test_a_cancelled_call_frees_its_place(scripted: Scripted, reply: Reply) -> None:
    ingress = scripted([[100.0, reply], [reply]])

    async def main() -> Reply:
        calls = calls_over(ingress, max_in_flight=1)
        first = asyncio.create_task(calls.ask(call()))
        await asyncio.sleep(1)
        first.cancel()
        return await calls.ask(call())

    assert run_virtual(main()) is reply
    assert ingress.asked[0].closed


@pytest.mark.parametrize(
    "value", ["\ud800", float("nan"), float("inf"), b"bytes", np.int64(3), np.zeros(2)]
)
def test_what_json_cannot_hold_is_the_rows_fault(value: Any) -> None:
    with pytest.raises(InvalidRequest):
        encoded({"input": value})
