"""Everything a running rollout has seen of its two arms, and what its gates say of it."""

from __future__ import annotations

from typing import Any, Final

from modelyard.config.rollout import RatioGate, Rollout
from modelyard.rollout import gates
from modelyard.rollout.arm_figures import ArmFigures
from modelyard.rollout.arm_totals import CANARY, STABLE, ArmTotals
from modelyard.rollout.columns import Columns, columns_of
from modelyard.rollout.event_share import EventShare, events_of
from modelyard.rollout.exposure import Exposure
from modelyard.rollout.latency_share import LatencyShare
from modelyard.rollout.limits import Limits
from modelyard.rollout.outcome import OutcomeBatch
from modelyard.rollout.packing import UnreadableEvidence, dump, load, pack, unpack
from modelyard.rollout.quality import Quality
from modelyard.rollout.seen import Seen
from modelyard.rollout.strata import Strata
from modelyard.rollout.tokens import TokenCounts
from modelyard.rollout.verdict import Verdict

_FORMAT: Final = 1
_RESTARTS_S: Final = 900.0  # evidence also begins anew within a long step
_LATENCIES: Final = ("ttft", "e2e")


class Evidence:
    """Of one rollout; lives in control, is saved often. Pure: the time is passed in, in seconds.

    Until begin_step outcomes are ignored; judgements count at any time.
    """

    _FIELDS: Final = ("_percent", "_began", "_samples")

    def __init__(self, plan: Rollout) -> None:
        self._plan = plan
        self._percent = -1.0
        self._began = 0.0
        self._samples = 0
        self._strata = Strata(plan.labels)
        self._exposure = Exposure(self._strata.count)
        self._totals = ArmTotals(self._strata)
        self._errors = EventShare(self._strata)
        self._failed = Seen()
        self._latencies = {
            kind: LatencyShare(self._strata, gate.margin_percent / 100)
            for kind in _LATENCIES
            if (gate := self._gate(kind)) is not None
        }
        self._limits = Limits(self._strata, plan.limits)
        tokens = plan.gates.tokens
        self._tokens = TokenCounts(self._strata, tokens.margin_percent / 100) if tokens else None
        self._quality = Quality(plan.gates.quality)

    @property
    def samples(self) -> int:
        """Requests that the canary answered or failed in this step; pairs, while shadowing."""
        return self._samples

    def begin_step(self, percent: float, now: float) -> None:
        """The weight is now `percent`, or shadowing began (0). What is counted by step is new."""
        self._percent = float(percent)
        self._samples = 0
        self._exposure.begin(0.5 if percent <= 0 else percent / 100, now)
        self._totals.begin()
        self._quality.begin()
        if self._tokens is not None:
            self._tokens.begin()
        self._restart(now)

    def take(self, batch: OutcomeBatch, now: float) -> None:
        """Outcomes of other rollouts and malformed ones are left out."""
        self._quality.take(batch.judgements, self._plan.id)
        if self._percent >= 0:
            shadowing = self._percent == 0
            self.take_columns(
                columns_of(batch.outcomes, self._plan.id, self._strata, shadowing), now
            )

    def take_columns(self, columns: Columns, now: float) -> None:
        """take, of what is in arrays already."""
        if now - self._began >= _RESTARTS_S:
            self._restart(now)
        self._totals.take(columns)
        self._samples += int(columns.canary.sum())
        share = self._exposure.share(now)
        failures = events_of(columns, columns.failed, self._failed, self._strata)
        self._errors.take(failures, share)
        for kind, latency in self._latencies.items():
            latency.take(columns, getattr(columns, kind), share, now)
        self._limits.take(columns, failures, share, self._exposure.weight)
        if self._tokens is not None:
            self._tokens.take(columns)
        self._exposure.take(columns)

    def verdicts(self) -> tuple[Verdict, ...]:
        """One for each gate of the plan, then one for each of its limits."""
        shadowing = self._percent == 0
        needed = self._plan.shadow_min_pairs if shadowing else self._plan.min_samples
        step = gates.Step(self._totals, self._samples, needed, compared=self._percent < 100)
        errors, tokens = self._plan.gates.errors, self._plan.gates.tokens
        result: list[Verdict] = []
        if errors is not None:
            evidence = self._errors.evidence()
            result.append(gates.errors(step, errors, evidence, self._name(evidence)))
        for kind, latency in self._latencies.items():
            gate = self._gate(kind)
            if gate is not None:
                evidence = latency.evidence()
                result.append(gates.latency(step, kind, gate, evidence, self._name(evidence)))
        if tokens is not None and self._tokens is not None:
            name = self._name(self._tokens.evidence())
            result.append(gates.tokens(step, tokens, self._tokens, name))
        quality = self._quality.verdict()
        if quality is not None:
            result.append(quality)
        return (*result, *self._limits.verdicts(step))

    def figures(self) -> tuple[ArmFigures, ...]:
        """Of the control arm and of the canary, in this order."""
        names = ("stable", "shadow" if self._percent == 0 else "canary")
        return tuple(
            self._totals.figures(arm, names[arm], *self._quality.counted(arm))
            for arm in (STABLE, CANARY)
        )

    def encode(self) -> bytes:
        parts = {name: part.state() for name, part in self._parts().items()}
        return pack({"format": _FORMAT, **dump(self, self._FIELDS), "parts": parts})

    @classmethod
    def decode(cls, data: bytes, plan: Rollout) -> Evidence:
        """A plan whose gates changed keeps what still answers its questions.

        Raises UnreadableEvidence.
        """
        state = unpack(data)
        evidence = cls(plan)
        try:
            if state["format"] != _FORMAT:
                raise UnreadableEvidence("a rollout's evidence is of another release")
            evidence._restore(state)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnreadableEvidence(
                f"a rollout's evidence cannot be read ({error!r}): begin it anew"
            ) from error
        return evidence

    def _restore(self, state: dict[str, Any]) -> None:
        if state["_percent"] >= 0:  # what is not restored begins here
            self.begin_step(state["_percent"], state["_began"])
        kept = self._parts()
        if tuple(state["parts"]["strata"]["labels"]) == self._strata.labels:
            load(self, self._FIELDS, state)
        else:  # counted by label: all but the judgements begins anew
            kept = {"quality": self._quality}
        for name in kept.keys() & state["parts"].keys():
            kept[name].restore(state["parts"][name])

    def _restart(self, now: float) -> None:
        self._began = float(now)
        self._errors.begin()
        self._limits.begin()
        for latency in self._latencies.values():
            latency.begin()

    def _parts(self) -> dict[str, Any]:
        named: dict[str, Any] = {
            "strata": self._strata,
            "exposure": self._exposure,
            "totals": self._totals,
            "errors": self._errors,
            "failed": self._failed,
            "limits": self._limits,
            "quality": self._quality,
            **self._latencies,
        }
        if self._tokens is not None:
            named["tokens"] = self._tokens
        return named

    def _gate(self, kind: str) -> RatioGate | None:
        gate: RatioGate | None = getattr(self._plan.gates, kind)
        return gate

    def _name(self, evidence: tuple[float, int]) -> str:
        return self._strata.name(evidence[1])
