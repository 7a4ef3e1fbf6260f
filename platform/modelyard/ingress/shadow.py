"""Shadow traffic: copies of some requests to a candidate version, whose answers nobody sees.

The first thing to go when there is little room: a copy starts only in a slot that is free while
nobody waits, and is cut as soon as somebody does. It costs its tenant nothing, and whatever becomes
of it, the request that it copies goes its way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final

from modelyard.contract.errors import Overloaded, RequestError
from modelyard.ingress.fault_kind import kind_of
from modelyard.ingress.judge import Judge
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.shadow_call import SHADOW, ShadowCalls
from modelyard.ingress.shadow_copy import Copy, candidate_of, copy_of, id_of_copy
from modelyard.ingress.shadow_pair import Side, at_ease, match_of
from modelyard.routing.arms import STABLE, bucket
from modelyard.routing.resolve import Target

log = logging.getLogger("modelyard.ingress")

MAX_COPIES: Final = 8  # at once in one ingress
LOOK_EACH_S: Final = 0.1


class Shadow:
    """One per ingress process: an AnswerObserver of its pipeline.

    counts: copies by version and what became of them. `answered`, `failed` and `refused` (its
    replica found the request wrong) are pairs; none are `left` (by its caller), `moved` (another
    version answered it), `shed` (no room or no time for either of the two), `busy`, `not_ready`,
    `closed` and `bug`.
    """

    def __init__(self, pipeline: Pipeline, calls: ShadowCalls, judge: Judge | None = None) -> None:
        """judge: of pairs whose rollout has one."""
        self._pipeline = pipeline
        self._calls = calls
        self._judge = judge
        self._copies: set[Copy] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closed = False
        self.counts: Counter[tuple[str, str]] = Counter()

    def wants(self, prepared: Prepared) -> Copy | None:
        """A copy of a request that is about to be sent, when it is one of the sample."""
        plan, shadows = prepared.target.route.rollout, self._pipeline.router.steering.shadows
        if plan is None or not shadows or self._closed:
            return None
        percent = shadows.get(plan.id, 0.0)
        target, record = prepared.target, prepared.record
        if target.rollout != plan.id or target.arm != STABLE:
            return None
        # Not the rollout's own draw, or the first to get the canary would be those copied before.
        drawn = bucket(f"shadow:{plan.id}", record.tenant, record.conversation or record.answer_id)
        if drawn >= percent / 100:
            return None
        candidate = candidate_of(prepared, self._pipeline)
        if candidate is None:
            self.counts[str(target.route.canary), "not_ready"] += 1
            return None
        if len(self._copies) >= MAX_COPIES:
            self.counts[candidate.version, "busy"] += 1
            return None
        return self._begun(prepared, candidate)

    def close(self) -> None:
        """Cut what is under way, and begin no more. From any thread: Serve ends a replica there."""
        self._closed = True
        for copy in tuple(self._copies):
            loop = copy.task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(copy.cut, "closed")

    def _begun(self, prepared: Prepared, candidate: Target) -> Copy:
        copy = Copy(prepared, candidate, self._pipeline.now)
        self._copies.add(copy)
        copy.task = asyncio.create_task(self._run(copy))
        copy.task.add_done_callback(lambda _: self._finished(copy))
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return copy

    def _finished(self, copy: Copy) -> None:
        self._copies.discard(copy)
        word = (copy.cut_for or "closed") if copy.task.cancelled() else copy.task.result()
        self.counts[copy.candidate.version, word] += 1

    async def _run(self, copy: Copy) -> str:
        """The word that counts it."""
        try:
            return await self._sent(copy)
        except Exception as error:  # noqa: BLE001  the edge of a background task
            # Nobody awaits it, and its request has gone its way.
            log.error("a shadow copy for %s failed: %s", copy.candidate.version, kind_of(error))
            return "bug"

    async def _sent(self, copy: Copy) -> str:
        original, now = copy.original.prepared, self._pipeline.now
        caller = self._calls.caller(original.caller.claim)
        record = self._calls.record(
            caller.claim, id_of_copy(original.record.request_id), original.record.route, SHADOW
        )
        sent = await at_ease(
            len(original.work.encoded),
            lambda: copy_of(original, copy.candidate, caller, record, now()),
        )
        if self._calls.somebody_waits(*copy.lanes):
            return "shed"
        side = Side(sent, now())
        try:
            await self._calls.answer(sent, lambda item: side.take(item, now()))
        except Overloaded:
            return "shed"  # here or at a replica: a full or draining one says nothing of a version
        except RequestError:
            pass  # its record says how it ended
        if side.shed:
            return "shed"
        copy.holds_slot = False
        await copy.original_ended.wait()
        await self._compare(copy, side)
        if side.refused:
            return "refused"
        return "answered" if side.answered else "failed"

    async def _compare(self, copy: Copy, side: Side) -> None:
        original, rollout, pair = copy.original, copy.candidate.rollout, side.record.pair
        match = await match_of(original, side)
        outcomes = self._pipeline.outcomes
        outcomes.add_outcome(original.outcome(STABLE, rollout, pair))
        outcomes.add_outcome(side.outcome(SHADOW, rollout, pair, match))
        if self._judge is not None:
            self._judge.take_pair(original, side)

    async def _look(self) -> None:
        """While copies run: cut those in whose way somebody waits."""
        while self._copies:
            await asyncio.sleep(LOOK_EACH_S)
            for copy in tuple(self._copies):
                if copy.holds_slot and self._calls.somebody_waits(*copy.lanes):
                    copy.cut("shed")
