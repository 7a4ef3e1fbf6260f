"""Quota on the data path: what is reserved, recalled, refused and given back on every way out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from modelyard.config.table import Table, parse_table
from modelyard.contract.envelope import Failure, Item, Usage
from modelyard.contract.errors import InvalidRequest, RateLimited, RequestError
from modelyard.contract.operations import KIND_OF, Operation
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.quota.book import Book, Seen
from modelyard.quota.bucket import UNITS
from modelyard.quota.figures import Key, class_of, figures_of
from modelyard.quota.messages import HolderReport, SplitReply
from modelyard.testing.in_memory import InMemoryIngress, table_record
from modelyard.testing.scripted_transport import Step
from modelyard.testing.virtual_time import run_virtual

Prepare = Callable[..., Prepared]
Ingress = Callable[..., InMemoryIngress]

# Without demand an ingress and control's pool hold one half each of every bucket.
LIMITS = {
    "input_tokens_per_min": 60_000,
    "input_burst_tokens": 1000,
    "output_tokens_per_min": 600,
    "output_burst_tokens": 300,
    "max_active_sequences": 2,
}
OUTPUT = Key("alpha", "generator", "output")
INPUT = Key("alpha", "generator", "input")
PERMITS = Key("alpha", "generator", "sequences")


def table(**quota: Any) -> Table:
    return parse_table(table_record(quotas={"alpha": LIMITS | quota}))


class Control:
    """The real book behind `recall`, with no network between."""

    def __init__(self, pipeline: Pipeline) -> None:
        assert pipeline.table is not None
        self._pipeline = pipeline
        now = pipeline.now()
        self.book = Book(1, now - 60, first=True)
        self.book.adopt(figures_of(pipeline.table.quotas), now)
        self.book.tick(now, Seen({}, up_s=60))
        self.recalls = 0
        pipeline.metering.recall = self.recall

    def exchange(self) -> None:
        """What happens once a second."""
        gate, now = self._pipeline.metering.gate, self._pipeline.now()
        for _ in range(3):
            reply = self.book.take(gate.report(now), now)
            assert reply is not None
            gate.take(reply, now)

    async def recall(self, report: HolderReport) -> SplitReply | None:
        self.recalls += 1
        return self.book.take(report, self._pipeline.now())


def level(pipeline: Pipeline, key: Key) -> int:
    part = pipeline.metering.gate.holder.part(key, pipeline.now())
    unit = 1 if key.is_permits else UNITS
    return part.level(pipeline.now()) // unit


def with_control(make: Ingress, *scripts: list[Step], **quota: Any) -> tuple[Pipeline, Control]:
    pipeline = make(*scripts, table=table(**quota)).pipeline
    control = Control(pipeline)
    control.exchange()
    return pipeline, control


def answered(tokens: int) -> Item:
    return Item(b"{}", 0, Usage(7, tokens))


def test_what_was_not_used_is_given_back(ingress_at: Ingress, prepare: Prepare) -> None:
    async def main() -> tuple[int, int, dict[str, str]]:
        pipeline, _ = with_control(ingress_at, [answered(20)])
        prepared = prepare(pipeline, max_tokens=100)
        await pipeline.call(prepared)
        return level(pipeline, OUTPUT), level(pipeline, INPUT), prepared.rate_limits

    output, input_, headers = run_virtual(main())
    assert (output, input_) == (130, 493)
    assert headers["x-ratelimit-limit-output-tokens"] == "600"
    assert headers["x-ratelimit-remaining-output-tokens"] == "50"


def test_a_second_request_beyond_the_level_is_429_until_the_first_has_ended(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    async def main() -> RateLimited:
        pipeline, _ = with_control(ingress_at, [answered(1)])
        first = prepare(pipeline, max_tokens=250)
        await pipeline.metering.reserve(first)
        with pytest.raises(RateLimited) as caught:
            await pipeline.call(prepare(pipeline, max_tokens=250))
        pipeline.books.settle(first, 503, "overloaded")
        await pipeline.call(prepare(pipeline, max_tokens=250))
        return caught.value

    error = run_virtual(main())
    assert error.reason == "quota_output"
    assert error.headers["x-ratelimit-limit-output-tokens"] == "600"
    assert error.retry_after_s == pytest.approx(20.0)


def test_without_any_split_control_is_asked_and_the_request_admitted(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    async def main() -> int:
        pipeline = ingress_at([answered(1)], table=table()).pipeline
        control = Control(pipeline)
        await pipeline.call(prepare(pipeline, max_tokens=200))
        return control.recalls

    assert run_virtual(main()) == 2, "the first one learns the epoch"


def test_a_control_that_does_not_answer_costs_a_quarter_second_and_a_429(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    async def silent(_: HolderReport) -> SplitReply | None:

        await asyncio.sleep(60)
        return None

    async def main() -> float:
        pipeline = ingress_at([answered(1)], table=table()).pipeline
        pipeline.metering.recall = silent
        began = pipeline.now()
        with pytest.raises(RateLimited):
            await pipeline.call(prepare(pipeline, max_tokens=200))
        return pipeline.now() - began

    assert run_virtual(main()) == pytest.approx(0.25)


def test_what_no_burst_can_hold_is_400_and_asks_nobody(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    async def main() -> tuple[str, int]:
        pipeline, control = with_control(ingress_at)
        with pytest.raises(InvalidRequest) as caught:
            await pipeline.call(prepare(pipeline, max_tokens=301))
        return caught.value.reason, control.recalls

    assert run_virtual(main()) == ("request_exceeds_burst", 0)


def test_shadow_mode_refuses_nothing(ingress_at: Ingress, prepare: Prepare) -> None:
    async def main() -> int:
        scripts: list[list[Step]] = [[answered(200)] for _ in range(4)]
        pipeline, _ = with_control(ingress_at, *scripts, mode="shadow")
        for _ in range(4):
            await pipeline.call(prepare(pipeline, max_tokens=200))
        return pipeline.metering.gate.tallies["alpha", "generator"].would_refuse

    assert run_virtual(main()) > 0


@pytest.mark.parametrize(
    "step",
    [
        Failure("internal", "a bug"),
        Failure("invalid_request", "too long"),
        RequestError("x"),
        ValueError("a bug"),
    ],
)
def test_a_request_that_fails_before_any_work_costs_nothing(
    ingress_at: Ingress, prepare: Prepare, step: Step
) -> None:
    async def main() -> tuple[int, int, int]:
        pipeline, _ = with_control(ingress_at, [step])
        with pytest.raises(RequestError):
            await pipeline.call(prepare(pipeline, max_tokens=100))
        return level(pipeline, OUTPUT), level(pipeline, INPUT), level(pipeline, PERMITS)

    assert run_virtual(main()) == (150, 500, 1)


def test_a_stream_that_is_left_costs_the_tokens_that_were_sent(
    ingress_at: Ingress, prepare: Prepare
) -> None:
    async def main() -> tuple[int, int]:
        items: list[Step] = [Item(b"data: x\n\n", 1) for _ in range(10)]
        pipeline, _ = with_control(ingress_at, [*items, answered(10)])
        stream = pipeline.stream(prepare(pipeline, max_tokens=100, stream=True))
        for _ in range(4):
            await anext(stream)
        await stream.aclose()
        return level(pipeline, OUTPUT), level(pipeline, PERMITS)

    assert run_virtual(main()) == (146, 1)


@pytest.mark.parametrize(
    "operation", [Operation.EMBED, Operation.CLASSIFY, Operation.RERANK, Operation.RESPONSES]
)
def test_every_operation_is_settled(
    ingress_at: Ingress, prepare: Prepare, operation: Operation
) -> None:
    async def main() -> int:
        pipeline, _ = with_control(ingress_at, [answered(0)])
        given = {"max_output_tokens": 100} if operation is Operation.RESPONSES else {}
        prepared = prepare(pipeline, operation, **given)
        await pipeline.call(prepared)
        assert prepared.reservation is not None
        assert prepared.reservation.settled
        return level(pipeline, Key("alpha", class_of(KIND_OF[operation]), "input"))

    assert run_virtual(main()) == 493


def test_a_tenant_without_a_quota_is_not_metered(ingress_at: Ingress, prepare: Prepare) -> None:
    async def main() -> Prepared:
        ingress = ingress_at([answered(1)])
        prepared = prepare(ingress.pipeline)
        await ingress.pipeline.call(prepared)
        return prepared

    prepared = run_virtual(main())
    assert prepared.reservation is None
    assert not prepared.rate_limits
