"""What a rollout's next move is decided from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from modelyard.config.rollout import OnFail, Rollout
from modelyard.rollout.arm_figures import ArmFigures
from modelyard.rollout.capacity import Demand
from modelyard.rollout.verdict import GateState, Verdict

LIMIT: Final = "limit_"


@dataclass(frozen=True, slots=True)
class Look:
    """One moment of one rollout. now: unix seconds.

    plan, alias, stable and canary: of the table; plan is None where it has the id no longer.
    samples: requests that the canary answered or failed at this weight, in Shadowing pairs. demand:
    of the canary, and stable_demand of the stable version; None when the board is silent. frozen:
    by whom, empty when nobody. held: why nothing may move. evidence_ok: whether what happens now is
    still being reported. elapsed_s: of this weight, by a clock that nobody sets, as far as it was
    seen.
    """

    now: float
    plan: Rollout | None
    alias: str = ""
    stable: str = ""
    canary: str = ""
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[ArmFigures, ...] = ()
    samples: int = 0
    demand: Demand | None = None
    frozen: str = ""
    held: str = ""
    evidence_ok: bool = True
    stable_demand: Demand | None = None
    elapsed_s: float = 0.0

    @property
    def failing(self) -> tuple[Verdict, ...]:
        return tuple(one for one in self.verdicts if one.state is GateState.FAILING)


def is_limit(gate: str) -> bool:
    return gate.startswith(LIMIT)


def on_fail(plan: Rollout, gate: str) -> OnFail:
    """What a failing gate does. A safety limit acts by itself whatever the plan."""
    if is_limit(gate):
        return "rollback"
    settings = getattr(plan.gates, gate, None)
    return "hold" if settings is None else settings.on_fail
