"""What became of the requests of rollouts, kept until control has it."""

from __future__ import annotations

import random
from collections import deque
from typing import Final, cast

from modelyard.ingress.charge import CLIENT_GONE
from modelyard.rollout.outcome import Judgement, Outcome, OutcomeArm, OutcomeBatch, Source
from modelyard.telemetry.request_log import RequestRecord

BATCH_S: Final = 0.9  # reports come each second, and a few in a row when control has more to say
MAX_BATCH: Final = 2000  # outcomes; of more a sample is kept
MAX_WORDS: Final = 1000  # judgements of each source, so that none takes another's room
MAX_BATCHES: Final = 60
MAX_KEPT: Final = 20_000  # outcomes, of all batches
# Outcomes in one report, some 1 MB. Control acknowledges what it has saved, every five seconds or
# so, and until then the same are sent: fewer would hold up what comes at MAX_BATCH a second.
MAX_SENT: Final = 16_000
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
        self._open: list[RequestRecord | Outcome] = []
        self._seen = 0
        self._pairs: list[Outcome] = []
        self._judgements: dict[Source, dict[tuple[str, str], Judgement]] = {}
        self._batches: deque[OutcomeBatch] = deque()

    def add(self, record: RequestRecord) -> None:
        """A closed record; one of no rollout, or of no caller, is none of ours. Read later."""
        if record.rollout and not record.purpose and _counts(record):
            self._sample(record)

    def add_turned(self, record: RequestRecord, code: str) -> None:
        """That the drawn arm refused a request which the other one now answers: the arm's fault,
        and its only outcome. At once: the record is about to name the other."""
        if record.rollout:
            self._sample(_outcome(record, code, refused=True))

    def add_outcome(self, outcome: Outcome) -> None:
        """One of a pair. Never sampled: half a pair is worth nothing, and shadow traffic bounds how
        many there are."""
        if len(self._pairs) < MAX_BATCH:
            self._pairs.append(outcome)

    def judge(self, judgement: Judgement) -> bool:
        """A word on an answer; the last of several of one source counts, but one of a pair is not
        replaced by one of none. False: too many at once."""
        words = self._judgements.setdefault(judgement.source, {})
        key = judgement.unit, judgement.arm
        before = words.get(key)
        if before is None and len(words) >= MAX_WORDS:
            return False
        if before is None or judgement.pair or not before.pair:
            words[key] = judgement
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

    def _sample(self, one: RequestRecord | Outcome) -> None:
        # Algorithm R (Vitter 1985): a uniform sample of a stream whose length nobody knows yet.
        self._seen += 1
        if len(self._open) < MAX_BATCH:
            self._open.append(one)
        elif (at := int(self._rng.random() * self._seen)) < MAX_BATCH:
            self._open[at] = one

    def _close(self, now: float) -> None:
        self._began = now
        if not (self._open or self._pairs or self._judgements):
            return
        self._number += 1
        rate = len(self._open) / self._seen if self._seen else 1.0
        outcomes = (*map(_read, self._open), *self._pairs)
        judgements = [one for words in self._judgements.values() for one in words.values()]
        # Where two sources speak of one answer the first counts, and half a pair is worth nothing.
        judgements.sort(key=lambda one: not one.pair)
        self._batches.append(OutcomeBatch(self._number, outcomes, tuple(judgements), rate))
        self._open, self._pairs, self._judgements, self._seen = [], [], {}, 0
        kept = sum(_size(batch) for batch in self._batches)
        while len(self._batches) > MAX_BATCHES or kept > MAX_KEPT:
            kept -= _size(self._batches.popleft())


def _size(batch: OutcomeBatch) -> int:
    return len(batch.outcomes) + len(batch.judgements)


def _counts(record: RequestRecord) -> bool:
    """What the ingress refused as wrong or for want of quota says nothing about a version; a 4xx of
    its replica does: of a canary that no longer takes what the control arm takes."""
    status = record.status
    return status == 200 or status == CLIENT_GONE or status >= 500 or bool(record.refused_by)


def _outcome(one: RequestRecord, code: str, *, refused: bool) -> Outcome:
    ttft_s = None if one.ttft_ms is None or not one.stream else one.ttft_ms / 1000
    return Outcome(
        rollout=one.rollout,
        arm=cast(OutcomeArm, one.arm),
        tier=one.tier,
        label=one.label,
        conversation=one.conversation[:CONVERSATION_DIGITS],
        code=code,
        failed=one.status >= 500,
        cancelled=one.status == CLIENT_GONE,
        ttft_s=ttft_s,
        e2e_s=one.duration_ms / 1000 if one.status == 200 else None,
        output_tokens=one.output_tokens,
        refused=refused,
    )


def _read(one: RequestRecord | Outcome) -> Outcome:
    if isinstance(one, Outcome):
        return one
    return _outcome(one, one.code, refused=bool(one.refused_by))
