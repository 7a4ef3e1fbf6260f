"""What became of the requests of rollouts, kept until control has it."""

from __future__ import annotations

import random
from collections import deque
from typing import Final, cast

from modelyard.ingress.charge import CLIENT_GONE
from modelyard.rollout.outcome import Judgement, Outcome, OutcomeArm, OutcomeBatch
from modelyard.telemetry.request_log import RequestRecord

BATCH_S: Final = 0.9  # reports come each second, and a few in a row when control has more to say
MAX_BATCH: Final = 2000  # outcomes; of more a sample is kept
MAX_BATCHES: Final = 60
MAX_KEPT: Final = 20_000  # outcomes, of all batches
MAX_SENT: Final = 6000  # outcomes in one report, some 1 MB
CONVERSATION_DIGITS: Final = 12


class Outcomes:
    """One per ingress process. A request costs it one test, of a rollout one append.

    Batches are numbered from 1 and kept until control acknowledges them, so that a lost report or
    reply loses nothing, and control takes a doubled one once. Bounded: with control away for
    longer than MAX_BATCHES or MAX_KEPT last, the oldest go.
    """

    def __init__(self, rng: random.Random, now: float) -> None:
        self._rng = rng
        self._began = now
        self._number = 0
        self._open: list[RequestRecord] = []
        self._seen = 0
        self._pairs: list[Outcome] = []
        self._judgements: dict[str, Judgement] = {}
        self._batches: deque[OutcomeBatch] = deque()

    def add(self, record: RequestRecord) -> None:
        """A closed record; one of no rollout, or of no caller, is none of ours. Read later."""
        if record.rollout and not record.purpose and _counts(record):
            # Algorithm R (Vitter 1985): a uniform sample of a stream whose length nobody knows yet.
            self._seen += 1
            if len(self._open) < MAX_BATCH:
                self._open.append(record)
            elif (at := int(self._rng.random() * self._seen)) < MAX_BATCH:
                self._open[at] = record

    def add_outcome(self, outcome: Outcome) -> None:
        """One of a pair. Never sampled: half a pair is worth nothing, and shadow traffic bounds how
        many there are."""
        if len(self._pairs) < MAX_BATCH:
            self._pairs.append(outcome)

    def judge(self, judgement: Judgement) -> bool:
        """A word on an answer; the last of several on one unit counts. False: too many at once."""
        if len(self._judgements) >= MAX_BATCH and judgement.unit not in self._judgements:
            return False
        self._judgements[judgement.unit] = judgement
        return True

    def batches(self, now: float) -> tuple[OutcomeBatch, ...]:
        """Those that control has not acknowledged, oldest first, as many as go in one report."""
        if now - self._began >= BATCH_S:
            self._close(now)
        sent: list[OutcomeBatch] = []
        outcomes = 0
        for batch in self._batches:
            outcomes += _size(batch)
            if sent and outcomes > MAX_SENT:
                break
            sent.append(batch)
        return tuple(sent)

    def taken(self, number: int) -> None:
        """Control has all batches up to this one. An old word changes nothing."""
        while self._batches and self._batches[0].number <= number:
            self._batches.popleft()

    def _close(self, now: float) -> None:
        self._began = now
        if not (self._open or self._pairs or self._judgements):
            return
        self._number += 1
        rate = len(self._open) / self._seen if self._seen else 1.0
        outcomes = (*map(_outcome, self._open), *self._pairs)
        judgements = tuple(self._judgements.values())
        self._batches.append(OutcomeBatch(self._number, outcomes, judgements, rate))
        self._open, self._pairs, self._judgements, self._seen = [], [], {}, 0
        kept = sum(_size(batch) for batch in self._batches)
        while len(self._batches) > MAX_BATCHES or kept > MAX_KEPT:
            kept -= _size(self._batches.popleft())


def _size(batch: OutcomeBatch) -> int:
    return len(batch.outcomes) + len(batch.judgements)


def _counts(record: RequestRecord) -> bool:
    """What was refused as wrong or for want of quota says nothing about a version."""
    return record.status == 200 or record.status == CLIENT_GONE or record.status >= 500


def _outcome(one: RequestRecord) -> Outcome:
    ttft_s = None if one.ttft_ms is None or not one.stream else one.ttft_ms / 1000
    return Outcome(
        rollout=one.rollout,
        arm=cast(OutcomeArm, one.arm),
        tier=one.tier,
        label=one.label,
        conversation=one.conversation[:CONVERSATION_DIGITS],
        code=one.code,
        failed=one.status >= 500,
        cancelled=one.status == CLIENT_GONE,
        ttft_s=ttft_s,
        e2e_s=one.duration_ms / 1000 if one.status == 200 else None,
        output_tokens=one.output_tokens,
    )
