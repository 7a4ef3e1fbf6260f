"""The seed's point rule in the place of the gates, under the same traffic and machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from modelyard.config.rollout import Gates, Rollout
from modelyard.rollout.columns import Columns
from modelyard.rollout.verdict import GateState, Verdict
from modelyard.simulate.rollout import Run

_LOOK_S: Final = 60.0


class PointRule:
    """Rolls back as soon as the share of errors is higher by the margin, looked at each minute."""

    def __init__(self, plan: Rollout) -> None:
        errors = plan.gates.errors
        self._margin = errors.margin_points / 100 if errors is not None else 1.0
        self._began = 0.0
        self._looks = 0
        self._compared = False
        self._counts = np.zeros((2, 2))
        self._failing = False

    @property
    def samples(self) -> int:
        return int(self._counts[1, 0])

    def begin_step(self, percent: float, now: float) -> None:
        self._began, self._looks = now, 0
        self._compared = percent < 100
        self._counts[:] = 0
        self._failing = False

    def take_columns(self, columns: Columns, now: float) -> None:
        for arm, of in enumerate((~columns.canary, columns.canary)):
            self._counts[arm] += (of.sum(), (columns.failed & of).sum())
        looks = int((now - self._began) / _LOOK_S)
        if looks > self._looks:
            self._looks = looks
            stable, canary = self._counts[:, 1] / np.maximum(self._counts[:, 0], 1)
            self._failing = bool(self._compared and canary - stable > self._margin)

    def verdicts(self) -> tuple[Verdict, ...]:
        state = GateState.FAILING if self._failing else GateState.PASSING
        return (Verdict("errors", state, "the share of errors is compared as it is"),)


def by_point_rule(one: Run) -> Run:
    """The same rollout with the rule, which knows errors only."""
    gates = Gates(errors=one.plan.gates.errors, ttft=None, e2e=None, tokens=None)
    plan = one.plan.model_copy(update={"gates": gates})
    return replace(one, plan=plan, gates=PointRule, way="columns")
