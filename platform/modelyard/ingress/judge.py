"""The judge of a rollout: which answers of both arms are read against its rubric.

Only of tenants that agreed. What is read is kept until it is judged, and nowhere after; no failure
of a judge reaches a caller: it is counted, and the answer is judged by nobody.
"""

from __future__ import annotations

from collections import Counter

from modelyard.config.rollout import Judge as JudgePlan
from modelyard.contract.envelope import Item
from modelyard.contract.operations import OPERATIONS_OF, Kind, Operation
from modelyard.ingress.judge_hook import JudgeHook
from modelyard.ingress.judge_model import JudgeModel
from modelyard.ingress.judge_queue import JudgeQueue, Sample, Waiting
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.shadow_call import SHADOW, ShadowCalls
from modelyard.ingress.shadow_pair import Side
from modelyard.rollout.outcome import OutcomeArm
from modelyard.routing.arms import CANARY, STABLE, bucket


class Judge:
    """One per ingress process: an AnswerObserver of its pipeline.

    counts: answers by alias and what became of them: `good`, `bad`, `no_verdict` (the judge failed,
    was late, or said something else), `too_long`, `dropped` (too many wait) and `bug`.
    """

    def __init__(
        self, pipeline: Pipeline, calls: ShadowCalls, hook: JudgeHook | None = None
    ) -> None:
        self._pipeline = pipeline
        self._queue = JudgeQueue(pipeline, JudgeModel(pipeline, calls), hook or JudgeHook())
        self._closed = False

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        return self._queue.counts

    def wants(self, prepared: Prepared) -> _Tap | None:
        """A tap on one of the sample, which is the same share of both arms."""
        plan = prepared.target.route.rollout
        if plan is None or plan.judge is None or prepared.target.rollout != plan.id:
            return None
        if self._pipeline.router.steering.shadows.get(plan.id):
            return None  # while copies run, pairs are judged: they say more in fewer
        if not self._may_read(prepared, plan.judge, prepared.record.answer_id):
            return None
        return _Tap(self, prepared)

    def take(self, side: Side) -> None:
        """A finished answer of either arm."""
        arm: OutcomeArm = CANARY if side.record.arm == CANARY else STABLE
        self._enter(((arm, side),))

    def take_pair(self, original: Side, copy: Side) -> None:
        """Both answers to one prompt, when both came, and where the rollout has a judge."""
        prepared, pair = original.prepared, copy.record.pair
        plan = prepared.target.route.rollout
        if plan is None or plan.judge is None or not (original.answered and copy.answered):
            return
        if self._may_read(prepared, plan.judge, pair):
            self._enter(((STABLE, original), (SHADOW, copy)), pair)

    def close(self) -> None:
        """Judge nothing any more, and forget what waits. From any thread."""
        self._closed = True
        self._queue.close()

    def _may_read(self, prepared: Prepared, plan: JudgePlan, key: str) -> bool:
        """One of the sample, of a tenant that agreed, and one text."""
        name = prepared.caller.claim.tenant
        tenant = self._pipeline.the_table().tenants.get(name)
        if self._closed or tenant is None or not tenant.judged or prepared.work.choices != 1:
            return False
        if Operation(prepared.envelope.operation) not in OPERATIONS_OF[Kind.GENERATOR]:
            return False
        return bucket("judge", name, key) < plan.sample_percent / 100

    def _enter(self, sides: tuple[tuple[OutcomeArm, Side], ...], pair: str = "") -> None:
        prepared = sides[0][1].prepared
        plan, alias = prepared.target.route.rollout, prepared.target.alias
        assert plan is not None
        assert plan.judge is not None
        samples = tuple(
            Sample(arm, side.prepared, answer)
            for arm, side in sides
            if (answer := side.answer) is not None
        )
        if len(samples) < len(sides):
            self.counts[alias, "too_long"] += len(sides)
        else:
            self._queue.put(Waiting(plan.id, plan.judge, samples, pair))


class _Tap:
    """Keeps the bytes of one answer until it has ended."""

    def __init__(self, judge: Judge, prepared: Prepared) -> None:
        self._judge = judge
        self._version = prepared.target.version
        self._side = Side(prepared, 0.0)

    def item(self, item: Item) -> None:
        self._side.take(item, 0.0)

    def ended(self, prepared: Prepared) -> None:
        if self._side.answered and prepared.record.version == self._version:
            self._judge.take(self._side)
