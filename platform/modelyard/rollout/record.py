"""What control must not lose of one rollout, and the log of what was decided."""

from __future__ import annotations

from typing import Final

from modelyard.config.frozen import Frozen
from modelyard.rollout.arm_figures import ArmFigures
from modelyard.rollout.look import Look
from modelyard.rollout.phases import OVER, RolloutPhase
from modelyard.rollout.verdict import Verdict

MAX_HISTORY: Final = 40  # decisions; each holds its evidence, and the whole state is one write
CONTROL: Final = "control"


class Decision(Frozen):
    """One change, and what it was made from.

    number: counts a rollout's decisions from 1, so that a hole shows. at: unix seconds. what: one
    word. why: one sentence. percent and phase: as they are after it. author: a key's id, `board`,
    or `control` for what it did by itself. verdicts and figures: as they were then.
    """

    number: int
    at: float
    author: str
    what: str
    why: str
    percent: float
    phase: RolloutPhase
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[ArmFigures, ...] = ()


class RolloutRecord(Frozen):
    """One rollout as control keeps it.

    percent: of conversations on the canary, as in State.weights. since: unix seconds of the phase;
    weight_since: of the weight, or of the beginning of shadowing. accepted: what a human let pass,
    as `gate:state`, until the weight rises. kept_until: until when a rolled back canary keeps a
    replica.
    """

    id: str
    alias: str
    stable: str
    canary: str
    phase: RolloutPhase = RolloutPhase.PENDING
    percent: float = 0.0
    since: float = 0.0
    weight_since: float = 0.0
    author: str = ""
    reason: str = ""
    accepted: tuple[str, ...] = ()
    kept_until: float | None = None
    decided: int = 0
    history: tuple[Decision, ...] = ()

    @property
    def over(self) -> bool:
        """It never moves again."""
        return self.phase in OVER

    @property
    def begun(self) -> bool:
        return self.phase is not RolloutPhase.PENDING


def decide(
    record: RolloutRecord,
    phase: RolloutPhase,
    what: str,
    why: str,
    now: float,
    *,
    author: str = CONTROL,
    percent: float | None = None,
    seen: Look | None = None,
    accepted: tuple[str, ...] | None = None,
    kept_until: float | None = None,
) -> tuple[RolloutRecord, Decision]:
    """The record after a decision, and the decision. percent: None where it stays. seen: what it
    was made from."""
    weight = record.percent if percent is None else percent
    if accepted is None:  # a human let pass what this weight showed: a higher one asks again
        accepted = record.accepted if weight <= record.percent else ()
    new_evidence = percent is not None or (
        phase is RolloutPhase.SHADOWING and not record.weight_since
    )
    decision = Decision(
        number=record.decided + 1,
        at=now,
        author=author,
        what=what,
        why=why,
        percent=weight,
        phase=phase,
        verdicts=seen.verdicts if seen is not None else (),
        figures=seen.figures if seen is not None else (),
    )
    changes = {
        "phase": phase,
        "percent": weight,
        "since": now,
        "weight_since": now if new_evidence else record.weight_since,
        "author": author,
        "reason": why,
        "accepted": accepted,
        "kept_until": kept_until,
        "decided": decision.number,
        "history": (*record.history, decision)[-MAX_HISTORY:],
    }
    return record.model_copy(update=changes), decision


def rebased(ended: RolloutRecord, onto: RolloutRecord) -> RolloutRecord:
    """A record that others have moved meanwhile, with the end that was decided on an older one: no
    decision of theirs is lost from the log."""
    last = ended.history[-1].model_copy(update={"number": onto.decided + 1})
    history = (*onto.history, last)[-MAX_HISTORY:]
    return ended.model_copy(update={"decided": last.number, "history": history})
