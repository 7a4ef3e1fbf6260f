import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from modelyard.config.table import parse_table
from modelyard.contract.envelope import Item
from modelyard.contract.errors import DeadlineExceeded, InvalidRequest, Overloaded
from modelyard.contract.operations import Operation
from modelyard.ingress.prepared import Prepared
from modelyard.testing.in_memory import InMemoryIngress, table_record
from modelyard.testing.scripted_transport import End, Sleep, Step
from modelyard.testing.virtual_time import run_virtual

Prepare = Callable[..., Prepared]
Ingress = Callable[..., InMemoryIngress]
# The route's deadlines are the defaults: first token 10 s, idle 15 s, total 60 s.


async def answered(ingress: InMemoryIngress, prepared: Prepared) -> list[Item]:
    if not prepared.envelope.stream:
        return [await ingress.pipeline.call(prepared)]
    async with aclosing(ingress.pipeline.stream(prepared)) as items:
        return [item async for item in items]


async def late(ingress: InMemoryIngress, prepared: Prepared) -> tuple[float, DeadlineExceeded]:
    """When the deadline struck, and its error; asserts that the replica was stopped."""
    with pytest.raises(DeadlineExceeded) as caught:
        await answered(ingress, prepared)
    (record,) = ingress.records
    assert (record.status, record.code) == (504, "deadline_exceeded")
    assert record.reason == caught.value.reason
    assert ingress.transport.calls[-1].end is End.CANCELLED
    return asyncio.get_running_loop().time(), caught.value


def strikes(
    ingress_at: Ingress, prepare: Prepare, script: list[Step], **request: Any
) -> tuple[float, str | None, str]:
    async def main() -> tuple[float, str | None, str]:
        ingress = ingress_at(script)
        at, error = await late(ingress, prepare(ingress.pipeline, **request))
        return at, error.reason, error.message

    return run_virtual(main())


def test_the_first_token_has_its_own_deadline(
    ingress_at: Ingress, prepare: Prepare, last: Item
) -> None:
    at, reason, text = strikes(ingress_at, prepare, [Sleep(10.1), last], stream=True)
    assert (at, reason) == (10, "first_token")
    assert "10 s" in text


def test_silence_between_items_has_its_own_deadline(
    ingress_at: Ingress, prepare: Prepare, first: Item
) -> None:
    script: list[Step] = [Sleep(9), first, Sleep(14), first, Sleep(15.1), first]
    at, reason, text = strikes(ingress_at, prepare, script, stream=True)
    assert (at, reason) == (9 + 14 + 15, "idle")
    assert "15 s" in text


def test_a_busy_stream_ends_at_its_total_deadline(
    ingress_at: Ingress, prepare: Prepare, first: Item
) -> None:
    script: list[Step] = [step for _ in range(100) for step in (Sleep(1), first)]
    at, reason, text = strikes(ingress_at, prepare, script, stream=True)
    assert (at, reason) == (60, "total")
    assert "60 s" in text


def test_a_unary_call_has_the_total_deadline_only(
    ingress_at: Ingress, prepare: Prepare, unary: Item
) -> None:
    assert strikes(ingress_at, prepare, [Sleep(61), unary])[:2] == (60, "total")

    async def main() -> Item:
        ingress = ingress_at([Sleep(59), unary])
        return await ingress.pipeline.call(prepare(ingress.pipeline))

    assert run_virtual(main()) == unary


@pytest.mark.parametrize(
    "request_",
    [
        {"operation": Operation.GENERATE, "deadline_ms": 2500},
        {"headers": {"X-Deadline-Ms": "2500"}},
    ],
)
def test_a_caller_may_lower_the_deadline_of_a_unary_call(
    ingress_at: Ingress, prepare: Prepare, unary: Item, request_: dict[str, Any]
) -> None:
    at, reason, text = strikes(ingress_at, prepare, [Sleep(5), unary], **request_)
    assert (at, reason) == (2.5, "total")
    assert "2.5 s" in text


@pytest.mark.parametrize(
    "request_",
    [
        {"operation": Operation.GENERATE, "deadline_ms": 2500},
        {"headers": {"X-Deadline-Ms": "2500"}},
    ],
)
def test_a_caller_may_lower_the_deadline_of_a_stream(
    ingress_at: Ingress, prepare: Prepare, first: Item, request_: dict[str, Any]
) -> None:
    script: list[Step] = [first, Sleep(5), first]
    at, _, text = strikes(ingress_at, prepare, script, stream=True, **request_)
    assert at == 2.5
    assert "2.5 s" in text


def test_the_answer_comes_before_the_openai_client_gives_up(
    ingress_at: Ingress, prepare: Prepare, unary: Item
) -> None:
    headers = {"x-stainless-read-timeout": "2.5"}
    assert strikes(ingress_at, prepare, [Sleep(5), unary], headers=headers)[0] == 2.25


def test_a_caller_cannot_raise_the_deadline(
    ingress_at: Ingress, prepare: Prepare, unary: Item
) -> None:
    headers = {"X-Deadline-Ms": "600000", "x-stainless-read-timeout": "600"}
    assert strikes(ingress_at, prepare, [Sleep(61), unary], headers=headers)[0] == 60


def test_the_read_timeout_of_the_openai_client_does_not_end_streams(
    ingress_at: Ingress, prepare: Prepare, last: Item
) -> None:
    async def main() -> list[Item]:
        ingress = ingress_at([Sleep(5), last])
        headers = {"x-stainless-read-timeout": "2"}
        prepared = prepare(ingress.pipeline, stream=True, headers=headers)
        return [item async for item in ingress.pipeline.stream(prepared)]

    assert run_virtual(main()) == [last]


def test_time_spent_before_the_dispatch_counts(
    ingress_at: Ingress, prepare: Prepare, unary: Item, last: Item
) -> None:
    async def main(stream: bool, script: list[Step]) -> tuple[float, int]:
        ingress = ingress_at(script)
        prepared = prepare(ingress.pipeline, stream=stream)
        await asyncio.sleep(4)
        at, _ = await late(ingress, prepared)
        return at, ingress.transport.calls[0].envelope.budget_ms

    assert run_virtual(main(False, [Sleep(60), unary])) == (60, 56_000)
    assert run_virtual(main(True, [Sleep(60), last])) == (10, 56_000)


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_is_already_too_late_reaches_no_replica(
    ingress_at: Ingress, prepare: Prepare, stream: bool
) -> None:
    async def main() -> None:
        ingress = ingress_at()
        prepared = prepare(ingress.pipeline, stream=stream, headers={"X-Deadline-Ms": "1000"})
        await asyncio.sleep(1)
        with pytest.raises(DeadlineExceeded) as caught:
            await answered(ingress, prepared)
        # No engine worked, so the caller may try again.
        assert (caught.value.reason, caught.value.retryable) == ("expired", True)
        assert ingress.transport.calls == []
        assert [record.status for record in ingress.records] == [504]

    run_virtual(main())


def test_a_deadline_after_the_engine_began_is_not_to_be_retried(
    ingress_at: Ingress, prepare: Prepare, unary: Item
) -> None:
    async def main() -> bool:
        ingress = ingress_at([Sleep(61), unary])
        return (await late(ingress, prepare(ingress.pipeline)))[1].retryable

    assert run_virtual(main()) is False


def test_each_route_has_its_own_deadlines(
    ingress_at: Ingress, prepare: Prepare, last: Item
) -> None:
    deadlines = {"first_token_s": 1, "idle_s": 2, "total_s": 3}
    routes = {"chat": {"stable": "gen@1.0.0", "deadlines": deadlines}}
    record = table_record(routes=routes, tenants={"alpha": {"models": ["*"]}})
    record["keys"] = record["keys"][:1]

    async def main() -> float:
        ingress = ingress_at([Sleep(60), last], table=parse_table(record))
        return (await late(ingress, prepare(ingress.pipeline, stream=True)))[0]

    assert run_virtual(main()) == 1


@pytest.mark.parametrize("text", ["0", "-5", "soon", "nan", "inf"])
def test_a_deadline_that_is_no_positive_number_is_400(prepare: Prepare, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        prepare(InMemoryIngress().pipeline, headers={"X-Deadline-Ms": text})
    assert caught.value.param == "X-Deadline-Ms"


def test_deadline_ms_in_a_body_is_native_only_and_elsewhere_ignored(
    ingress_at: Ingress, prepare: Prepare, unary: Item
) -> None:
    async def main(value: object) -> Item:
        ingress = ingress_at([Sleep(5), unary])
        prepared = prepare(ingress.pipeline, deadline_ms=value)
        assert prepared.record.ignored_fields == ("deadline_ms",)
        return await ingress.pipeline.call(prepared)

    for value in (1, 0, -1, True, 10**400, "soon"):
        assert run_virtual(main(value)) == unary


def test_a_whole_answer_may_have_been_worked_on_although_its_replica_is_silent_now(
    ingress_at: Ingress, prepare: Prepare, last: Item
) -> None:
    """A busy machine can keep a replica's posts away for five seconds."""

    async def main() -> None:
        ingress = ingress_at([Sleep(100), last])
        call = asyncio.create_task(ingress.pipeline.call(prepare(ingress.pipeline)))
        await asyncio.sleep(1)
        ingress.pipeline.fleet.update([])
        with pytest.raises(DeadlineExceeded) as caught:
            await call
        assert not caught.value.retryable

    run_virtual(main())


@pytest.mark.parametrize("stream", [True, False])
def test_a_request_whose_last_replica_went_before_it_began_may_be_tried_again(
    ingress_at: Ingress, prepare: Prepare, last: Item, stream: bool
) -> None:
    """It waited in the cluster for a replica: no engine worked, so it is no 504."""

    async def main() -> None:
        ingress = ingress_at([Sleep(100), last])
        prepared = prepare(ingress.pipeline, stream=stream)
        ingress.pipeline.fleet.update([])
        with pytest.raises(Overloaded) as caught:
            await answered(ingress, prepared)
        assert (caught.value.reason, caught.value.retryable) == ("not_loaded", True)
        assert [record.status for record in ingress.records] == [503]

    run_virtual(main())
