"""Everything a running rollout has seen of its two arms, and what its gates say of it."""

from __future__ import annotations

from typing import Any, Final

from modelyard.config.rollout import RatioGate, Rollout
from modelyard.rollout import gates
from modelyard.rollout.arm_figures import ArmFigures
from modelyard.rollout.arm_totals import CANARY, STABLE, ArmTotals
from modelyard.rollout.budget import log_threshold
from modelyard.rollout.columns import Columns, columns_of
from modelyard.rollout.conversations import Conversations
from modelyard.rollout.error_share import ErrorShare
from modelyard.rollout.exposure import Exposure
from modelyard.rollout.latency_share import LatencyShare
from modelyard.rollout.limits import Limits
from modelyard.rollout.mixture import Against
from modelyard.rollout.outcome import OutcomeBatch
from modelyard.rollout.packing import UnreadableEvidence, dump, load, pack, unpack
from modelyard.rollout.quality import Quality
from modelyard.rollout.step import Step, is_failing
from modelyard.rollout.strata import Strata
from modelyard.rollout.tokens import TokenCounts
from modelyard.rollout.verdict import Verdict

_FORMAT: Final = 2
# Within a long step another window begins: as long as two canary requests a second need for 1800,
# so that 1 % -> 3 % is seen inside one.
_WINDOW_S: Final = 900.0
_LATENCIES: Final = ("ttft", "e2e")


class Evidence:
    """Of one rollout; lives in control, is saved often. Pure: the time is passed in, in seconds.

    Until begin_step outcomes are ignored; judgements count at any time. A step has its own totals;
    evidence is of windows, which begin with each step and within long ones, and go on.
    """

    _FIELDS: Final = ("_percent", "_began", "_samples", "_now")

    def __init__(self, plan: Rollout) -> None:
        self._plan = plan
        self._percent = -1.0
        self._began = self._now = 0.0
        self._samples = 0
        self._strata = Strata(plan.labels)
        self._exposure = Exposure(self._strata.count)
        self._totals = ArmTotals(self._strata)
        self._conversations = Conversations()
        errors, tokens = plan.gates.errors, plan.gates.tokens
        self._errors = ErrorShare(self._strata, errors.margin_points / 100) if errors else None
        self._latencies = {
            kind: LatencyShare(self._strata, gate.margin_percent / 100)
            for kind in _LATENCIES
            if (gate := self._gate(kind)) is not None
        }
        self._limits = Limits(self._strata, plan.limits)
        self._tokens = TokenCounts(self._strata, tokens.margin_percent / 100) if tokens else None
        self._quality = Quality(plan.gates.quality)

    @property
    def samples(self) -> int:
        """Requests that the canary answered or failed in this step; pairs, while shadowing."""
        return self._samples

    def begin_step(self, percent: float, now: float) -> None:
        """The weight is now `percent`, or shadowing began (0). What is counted by step is new."""
        self._forget_what_failed()
        self._percent = float(percent)
        self._samples = 0
        self._exposure.begin(0.5 if percent <= 0 else percent / 100, now)
        self._totals.begin()
        self._conversations.begin()
        self._quality.begin()
        if self._tokens is not None:
            self._tokens.begin()
        self._now = float(now)
        self._limits.begin_window(now)
        self._begin_window(now)

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
        self._now = float(now)
        if now - self._began >= _WINDOW_S:
            self._begin_window(now)
        self._totals.take(columns)
        self._conversations.take(columns)
        self._samples += int(columns.canary.sum())
        share = self._exposure.share(now)
        if self._errors is not None:
            self._errors.take(columns, share)
        for kind, latency in self._latencies.items():
            latency.take(columns, getattr(columns, kind), share, now)
        self._limits.take(columns, share, self._exposure.weight, now)
        if self._tokens is not None:
            self._tokens.take(columns)
        self._exposure.take(columns)

    def verdicts(self) -> tuple[Verdict, ...]:
        """One for each gate of the plan, then one for each of its limits."""
        step, plan = self._step(), self._plan.gates
        result: list[Verdict] = []
        if plan.errors is not None and self._errors is not None:
            against = self._errors.against(log_threshold("errors"))
            result.append(gates.errors(step, plan.errors, against, self._name(against)))
        for kind, latency in self._latencies.items():
            gate = self._gate(kind)
            if gate is not None:
                against = latency.against(log_threshold(kind))
                result.append(gates.latency(step, kind, gate, against, self._name(against)))
        if plan.tokens is not None and self._tokens is not None:
            name = self._name(self._tokens.against())
            result.append(gates.tokens(step, plan.tokens, self._tokens, name))
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
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise UnreadableEvidence(
                f"a rollout's evidence cannot be read ({error!r}): begin it anew"
            ) from error
        return evidence

    def _restore(self, state: dict[str, Any]) -> None:
        if state["_percent"] >= 0:  # what is not restored begins here
            self.begin_step(state["_percent"], state["_now"])
        kept = self._parts()
        if tuple(state["parts"]["strata"]["labels"]) == self._strata.labels:
            load(self, self._FIELDS, state)
        else:  # counted by label: all but the judgements begins anew
            kept = {"quality": self._quality}
        for name in kept.keys() & state["parts"].keys():
            kept[name].restore(state["parts"][name])

    def _step(self) -> Step:
        shadowing = self._percent == 0
        return Step(
            self._totals,
            self._conversations,
            self._samples,
            self._plan.shadow_min_pairs if shadowing else self._plan.min_samples,
            compared=self._percent < 100,
            now=self._now,
        )

    def _begin_window(self, now: float) -> None:
        self._began = float(now)
        for one in self._compared().values():
            one.begin_window(now)

    def _forget_what_failed(self) -> None:
        """Somebody let it pass: the new step must show it again, by itself."""
        for gate, one in self._compared().items():
            if is_failing(gate, one.against(log_threshold(gate))):
                one.forget()

    def _compared(self) -> dict[str, ErrorShare | LatencyShare]:
        errors = {} if self._errors is None else {"errors": self._errors}
        return {**errors, **self._latencies}

    def _parts(self) -> dict[str, Any]:
        named: dict[str, Any] = {
            "strata": self._strata,
            "exposure": self._exposure,
            "totals": self._totals,
            "conversations": self._conversations,
            "limits": self._limits,
            "quality": self._quality,
            **self._compared(),
        }
        if self._tokens is not None:
            named["tokens"] = self._tokens
        return named

    def _gate(self, kind: str) -> RatioGate | None:
        gate: RatioGate | None = getattr(self._plan.gates, kind)
        return gate

    def _name(self, against: Against) -> str:
        return self._strata.name(against.slice_)
