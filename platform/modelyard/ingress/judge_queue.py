"""The answers that wait to be judged, and the workers that have them judged."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from typing import Final

from modelyard.config.rollout import Judge as JudgePlan
from modelyard.contract.operations import Operation
from modelyard.ingress.fault_kind import kind_of
from modelyard.ingress.judge_hook import JudgeHook
from modelyard.ingress.judge_model import JudgeModel
from modelyard.ingress.judge_question import NoVerdict, Question, question_of
from modelyard.ingress.outcomes import CONVERSATION_DIGITS
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.shadow_call import SHADOW
from modelyard.ingress.shadow_pair import at_ease
from modelyard.rollout.outcome import Judgement, OutcomeArm

log = logging.getLogger("modelyard.ingress")

MAX_WAITING: Final = 64  # answers or pairs
MAX_WAITING_BYTES: Final = 16 * 1024 * 1024  # of requests and answers, all together
WORKERS: Final = 2


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer to be judged, and the request to it. Bytes as they were sent: they are read later,
    off the hot path."""

    arm: OutcomeArm
    prepared: Prepared
    answer: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.answer) + len(self.prepared.work.encoded)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One sample, or the two of a pair, which are judged both or not at all."""

    rollout: str
    plan: JudgePlan
    samples: tuple[Sample, ...]
    pair: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(sample.size_bytes for sample in self.samples)


class JudgeQueue:
    """Bounded: beyond that an answer is dropped, for one judged too late helps nobody."""

    def __init__(self, pipeline: Pipeline, model: JudgeModel, hook: JudgeHook) -> None:
        self._pipeline = pipeline
        self._model = model
        self._hook = hook
        self._waiting: asyncio.Queue[Waiting] = asyncio.Queue(MAX_WAITING)
        self._bytes = 0
        self._work: asyncio.Task[None] | None = None
        self._failing = False
        self.counts: Counter[tuple[str, str]] = Counter()

    def put(self, waiting: Waiting) -> None:
        if self._waiting.full() or self._bytes + waiting.size_bytes > MAX_WAITING_BYTES:
            self._count(waiting, "dropped")
            return
        self._bytes += waiting.size_bytes
        self._waiting.put_nowait(waiting)
        if self._work is None:
            self._work = asyncio.create_task(self._run())

    def close(self) -> None:
        if self._work is not None:
            loop = self._work.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._work.cancel)

    async def _run(self) -> None:
        """Until it is cancelled: the hook's connections end with those who use them."""
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(WORKERS):
                    workers.create_task(self._judge_on())
        finally:
            await self._hook.aclose()

    async def _judge_on(self) -> None:
        """For ever."""
        while True:
            waiting = await self._waiting.get()
            try:
                await self._judge(waiting)
                self._recovered()
            except (NoVerdict, TimeoutError) as error:
                self._failed(waiting, str(error) or "it was late")
            except Exception as error:  # noqa: BLE001  the edge of a background task
                log.error("judging for %s failed: %s", waiting.rollout, kind_of(error))
                self._count(waiting, "bug")
            finally:
                self._bytes -= waiting.size_bytes
                del waiting  # or the last one would be kept until the next comes

    async def _judge(self, waiting: Waiting) -> None:
        verdicts = [await self._is_good(waiting.plan, sample) for sample in waiting.samples]
        for sample, good in zip(waiting.samples, verdicts, strict=True):
            self.counts[sample.prepared.target.alias, "good" if good else "bad"] += 1
            judgement = Judgement(
                rollout=waiting.rollout,
                arm=sample.arm,
                unit=self._unit(sample),
                conversation=sample.prepared.record.conversation[:CONVERSATION_DIGITS],
                good=good,
                source="judge",
                pair=waiting.pair,
            )
            self._pipeline.outcomes.judge(judgement)

    async def _is_good(self, plan: JudgePlan, sample: Sample) -> bool:
        question = await at_ease(sample.size_bytes, lambda: _question(plan, sample))
        async with asyncio.timeout(plan.timeout_s):
            if plan.url is not None:
                return await self._hook.is_good(plan.url, question)
            assert plan.model is not None, "a plan has one of the two"
            claim = sample.prepared.caller.claim
            return await self._model.is_good(plan.model, question, claim, plan.timeout_s)

    def _unit(self, sample: Sample) -> str:
        """The nonce of the answer's id, as for feedback; of a copy, which has none, its own id."""
        record = sample.prepared.record
        if sample.arm == SHADOW:
            return record.answer_id
        return self._pipeline.answer_of(record.answer_id, record.tenant).nonce.hex()

    def _failed(self, waiting: Waiting, why: str) -> None:
        self._count(waiting, "no_verdict")
        if not self._failing:
            log.warning("the judge of %s gives no verdict: %s", waiting.rollout, why)
        self._failing = True

    def _recovered(self) -> None:
        if self._failing:
            log.warning("the judge gives verdicts again")
        self._failing = False

    def _count(self, waiting: Waiting, word: str) -> None:
        for sample in waiting.samples:
            self.counts[sample.prepared.target.alias, word] += 1


def _question(plan: JudgePlan, sample: Sample) -> Question:
    prepared = sample.prepared
    operation = Operation(prepared.envelope.operation)
    body, stream = prepared.work.encoded, prepared.work.stream
    return question_of(operation, body, sample.answer, plan.rubric, stream=stream)
