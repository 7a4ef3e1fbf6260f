"""Whole rollouts in virtual time: production's own Evidence, and its own state machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

import numpy as np

from modelyard.config.rollout import Rollout
from modelyard.rollout.capacity import Demand
from modelyard.rollout.columns import Columns
from modelyard.rollout.commands import ordered
from modelyard.rollout.evidence import Evidence
from modelyard.rollout.look import Look
from modelyard.rollout.machine import advance
from modelyard.rollout.outcome import OutcomeBatch
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.readiness import needs_human, rolls_back
from modelyard.rollout.record import RolloutRecord
from modelyard.rollout.verdict import Verdict
from modelyard.simulate.rollout_drawn import Drawn
from modelyard.simulate.rollout_traffic import Stream, Traffic

_DRAWN_S: Final = 300.0  # at once: as one array it is faster
_SAVED_S: Final = 30.0  # control saves more often; each time costs 40 ms here
_ROOM: Final = Demand(ready=1, slots=1_000_000, requests=1)
NAME: Final = "simulated"


class Gatekeeper(Protocol):
    """What a rollout is decided by: Evidence, or a rule in its place."""

    @property
    def samples(self) -> int: ...
    def begin_step(self, percent: float, now: float) -> None: ...
    def take_columns(self, columns: Columns, now: float) -> None: ...
    def verdicts(self) -> tuple[Verdict, ...]: ...


class MakesGatekeeper(Protocol):
    def __call__(self, plan: Rollout) -> Gatekeeper: ...


@dataclass(frozen=True, slots=True)
class Run:
    """A rollout that is looked at every tick_s.

    passed_at: percent; it ends when its weight is that, and at until_s in any case. way: `columns`
    hands Evidence arrays, which is fast; `outcomes` the records that an ingress sends, with
    Evidence saved and read again in between, as in production.
    """

    traffic: Traffic = field(default_factory=Traffic)
    plan: Rollout = field(default_factory=lambda: Rollout(id=NAME, start="automatic"))
    tick_s: float = 5.0
    passed_at: float = 101.0
    until_s: float = 6 * 3600.0
    way: Literal["columns", "outcomes"] = "columns"
    gates: MakesGatekeeper = Evidence


@dataclass(frozen=True, slots=True)
class Ending:
    """end: `open` where it had not decided by until_s. gate: what rolled it back, "" for none.
    after_s: of its end. asked: the gates that asked for a human, who always said: go on."""

    end: Literal["rolled_back", "passed", "open"]
    gate: str
    after_s: float
    asked: frozenset[str] = frozenset()
    asked_s: float = math.inf


def run(one: Run, seed: int) -> Ending:
    """Deterministic, for a seed."""
    return _Virtual(one, seed).run()


def runs(one: Run, seeds: Sequence[int]) -> list[Ending]:
    return [run(one, seed) for seed in seeds]


class _Virtual:
    def __init__(self, one: Run, seed: int) -> None:
        self._one = one
        self._stream = Stream(one.traffic, np.random.default_rng(seed))
        self._gates = one.gates(one.plan)
        self._record = RolloutRecord(id=NAME, alias="chat", stable="chat@1", canary="chat@2")
        self._batches = 0
        self._saved_at = 0.0
        self._asked: frozenset[str] = frozenset()
        self._asked_s = math.inf

    def run(self) -> Ending:
        now = 0.0
        ending = self._look(now)
        while ending is None:
            percent = self._record.percent
            self._gates.begin_step(percent, now)
            while ending is None and self._record.percent == percent:
                now, ending = self._watch(percent, now)
        return ending

    def _watch(self, percent: float, began: float) -> tuple[float, Ending | None]:
        """At one weight, until it rises or ends or what was drawn is used up."""
        now = began
        for now, drawn in self._stream.ticks(percent / 100, began, _DRAWN_S, self._one.tick_s):
            self._feed(drawn, now)
            ending = self._look(now)
            if ending is not None or self._record.percent != percent:
                return now, ending
        return now, None

    def _feed(self, drawn: Drawn, now: float) -> None:
        if self._one.way == "columns":
            self._gates.take_columns(drawn.columns(), now)
            return
        evidence = self._gates
        assert isinstance(evidence, Evidence)
        self._batches += 1
        evidence.take(OutcomeBatch(self._batches, drawn.outcomes(NAME)), now)
        if now - self._saved_at >= _SAVED_S:
            self._gates = Evidence.decode(evidence.encode(), self._one.plan)
            self._saved_at = now

    def _look(self, now: float) -> Ending | None:
        before, look = self._record, self._seen(now)
        self._record, _ = advance(before, look)
        if self._record.phase is RolloutPhase.ROLLED_BACK:
            verdict = rolls_back(before, look, self._one.plan)
            return self._ended("rolled_back", now, verdict.gate if verdict is not None else "")
        if self._record.phase is RolloutPhase.AWAITING_APPROVAL:
            self._approve(before, look)
        passed = self._record.over or self._record.percent >= self._one.passed_at
        if passed or now >= self._one.until_s:
            return self._ended("passed" if passed else "open", now)
        return None

    def _approve(self, before: RolloutRecord, look: Look) -> None:
        verdict = needs_human(before, look, self._one.plan)
        if not self._asked:
            self._asked_s = look.now
        self._asked |= {verdict.gate if verdict is not None else ""}
        self._record = ordered(self._record, "approve", look, "human", "go on")

    def _seen(self, now: float) -> Look:
        record, begun = self._record, self._record.begun
        return Look(
            now=now,
            plan=self._one.plan,
            alias=record.alias,
            stable=record.stable,
            canary=record.canary,
            verdicts=self._gates.verdicts() if begun else (),
            samples=self._gates.samples,
            demand=_ROOM,
            stable_demand=_ROOM,
            elapsed_s=now - record.weight_since,
        )

    def _ended(
        self, end: Literal["rolled_back", "passed", "open"], now: float, gate: str = ""
    ) -> Ending:
        return Ending(end, gate, now, self._asked, self._asked_s)
