"""The evidence of every rollout that has begun, and which batches of which ingress are in it."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from modelyard.config.rollout import Rollout
from modelyard.contract.errors import ModelyardError
from modelyard.control.evidence import EvidenceKind, RolloutEvidence
from modelyard.control.report import ControlReport
from modelyard.rollout.outcome import Judgement, Outcome, OutcomeBatch
from modelyard.rollout.record import RolloutRecord

log = logging.getLogger("modelyard.control")

MAX_INGRESSES: Final = 512  # remembered; each restart of one has a new id


@dataclass(slots=True)
class OneRollout:
    """mark: the weight's beginning, so that evidence of the step before is not taken for this
    one's. heard_at: unix seconds of the last outcome, None before any. since: monotonic seconds at
    which this control saw the step begin, or go on."""

    evidence: RolloutEvidence
    plan: Rollout
    mark: float
    since: float
    heard_at: float | None = None


class EvidenceShelf:
    """In memory, and saved every few seconds. A batch is acknowledged when it is saved, so that an
    ingress sends again what a control that died had only heard."""

    def __init__(self, kind: EvidenceKind, monotonic: Callable[[], float]) -> None:
        self._kind = kind
        self._monotonic = monotonic
        self._kept: dict[str, Any] = {}  # read, and not decoded before the plan is known
        self._taken: dict[str, int] = {}
        self._encoded: dict[str, int] = {}
        self._saved: dict[str, int] = {}
        self._heard_at: float | None = None
        self.by_rollout: dict[str, OneRollout] = {}
        # (rollout, arm, kind): requests, what was sampled counted for those that were left out.
        self.outcomes: dict[tuple[str, str, str], float] = {}

    def saved(self, ingress: str) -> int:
        """The number of its last batch that a later control would have; 0 for none. Where no
        evidence is collected there is nothing to lose."""
        return (self._saved if self.by_rollout else self._taken).get(ingress, 0)

    def heard_s(self) -> float | None:
        """Seconds since any ingress reported, with outcomes or without."""
        return None if self._heard_at is None else self._monotonic() - self._heard_at

    def elapsed_s(self, rollout: str) -> float:
        """Seconds for which this control has seen a rollout at its weight; 0 for none."""
        one = self.by_rollout.get(rollout)
        return 0.0 if one is None else self._monotonic() - one.since

    def take(self, report: ControlReport, now: float) -> bool:
        """Each batch once, whatever comes twice or out of order; whether there was a new one."""
        self._heard_at = self._monotonic()
        last = first = self._taken.get(report.ingress, 0)
        for batch in sorted(report.outcomes, key=lambda one: one.number):
            if batch.number > last:
                last = batch.number
                self._feed(batch, now)
        if last > first:
            self._taken.pop(report.ingress, None)
            self._taken[report.ingress] = last  # the latest heard of is last in the order
            while len(self._taken) > MAX_INGRESSES:
                del self._taken[next(iter(self._taken))]
        return last > first

    def judge(self, judgements: tuple[Judgement, ...], now: float) -> None:
        self._feed(OutcomeBatch(0, (), judgements), now)

    def settle(self, record: RolloutRecord, plan: Rollout, now: float) -> None:
        """After each commit, and each tick: the evidence follows the record and the plan."""
        one = self.by_rollout.get(record.id)
        if one is None:
            one = self.by_rollout[record.id] = self._restored(record, plan, now)
        if one.plan != plan:
            one.evidence, one.plan = self._decoded(record, one.evidence.encode(), plan, now), plan
        if one.mark != record.weight_since:
            one.evidence.begin_step(record.percent, now)
            one.mark, one.since = record.weight_since, self._monotonic()

    def drop(self, rollout: str) -> None:
        self.by_rollout.pop(rollout, None)
        self._kept.pop(rollout, None)

    def forget_all_but(self, known: Collection[str]) -> None:
        """What was kept of rollouts that nobody knows any more."""
        self._kept = {rollout: kept for rollout, kept in self._kept.items() if rollout in known}

    def encode(self) -> bytes:
        """What to save; once it is, `note_saved`."""
        self._encoded = dict(self._taken)
        rollouts = {
            rollout: {"mark": one.mark, "data": base64.b64encode(one.evidence.encode()).decode()}
            for rollout, one in self.by_rollout.items()
        }
        # What no plan has claimed yet stays as it was.
        return json.dumps({"rollouts": self._kept | rollouts, "taken": self._taken}).encode()

    def note_saved(self) -> None:
        """What was last encoded is in the store, and may be acknowledged."""
        self._saved = self._encoded

    def restore(self, data: bytes) -> None:
        """Evidence that cannot be read begins anew: a step then lasts longer, and nothing else."""
        try:
            record = json.loads(data)
            self._taken = {str(name): int(number) for name, number in record["taken"].items()}
            self._kept = dict(record["rollouts"])
            self._saved = dict(self._taken)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            log.error("the kept evidence cannot be read, it begins anew: %r", error)

    def _restored(self, record: RolloutRecord, plan: Rollout, now: float) -> OneRollout:
        kept = self._kept.pop(record.id, None)
        try:
            data, mark = base64.b64decode(kept["data"]), float(kept["mark"])
        except (LookupError, TypeError, ValueError):
            evidence, mark = self._new(record, plan, now), record.weight_since
        else:
            evidence = self._decoded(record, data, plan, now)
        return OneRollout(evidence, plan, mark, self._monotonic())

    def _decoded(
        self, record: RolloutRecord, data: bytes, plan: Rollout, now: float
    ) -> RolloutEvidence:
        try:
            return self._kind.decode(data, plan)
        except (ModelyardError, LookupError, TypeError, ValueError) as error:
            log.error("the evidence of %s cannot be read, it begins anew: %r", record.id, error)
            return self._new(record, plan, now)

    def _new(self, record: RolloutRecord, plan: Rollout, now: float) -> RolloutEvidence:
        evidence = self._kind(plan)
        evidence.begin_step(record.percent, now)
        return evidence

    def _feed(self, batch: OutcomeBatch, now: float) -> None:
        named = {one.rollout for one in batch.outcomes} | {one.rollout for one in batch.judgements}
        for rollout in named:
            if (one := self.by_rollout.get(rollout)) is not None:
                one.evidence.take(batch, now)
                one.heard_at = now
        weight = 1 / batch.rate if 0 < batch.rate <= 1 else 1.0
        for outcome in batch.outcomes:
            if outcome.rollout in self.by_rollout:  # the name comes from outside: bounded here
                key = outcome.rollout, outcome.arm, _kind(outcome)
                self.outcomes[key] = self.outcomes.get(key, 0.0) + weight


def _kind(outcome: Outcome) -> str:
    if outcome.cancelled:
        return "cancelled"
    return "failed" if outcome.failed else "refused" if outcome.refused else "ok"
