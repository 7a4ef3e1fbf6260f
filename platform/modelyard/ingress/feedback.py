"""Feedback: what a user thought of an answer, as evidence on the arm that gave it."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from modelyard.config.rollout import Label, Rollout
from modelyard.config.table import Table
from modelyard.contract.answer_id import AnswerId
from modelyard.rollout.outcome import Judgement
from modelyard.routing.steering import Steering

LATE_S: Final = 7 * 86_400
GOOD: Final = 0.5  # a score from here up is a good answer
MAX_ID_CHARACTERS: Final = 1024

# For people, by the word that the log has.
NOT_COUNTED: Final = {
    "no_rollout": "the answer belongs to no rollout",
    "finished": "its rollout is over",
    "late": "the answer is older than seven days",
    "crowded": "too much feedback came at once: send it again in a minute",
}


class Feedback(BaseModel):
    """One word on one answer. `id` is the answer's own, with or without its prefix."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(min_length=1, max_length=MAX_ID_CHARACTERS)
    score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)] | None = None
    thumbs: Literal["up", "down"] | None = None
    label: Label | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if sum(one is not None for one in (self.score, self.thumbs, self.label)) != 1:
            raise ValueError("give one of score, thumbs and label")
        return self

    def is_good(self, plan: Rollout) -> bool:
        """A label is bad where the plan's quality gate says so."""
        if self.score is not None:
            return self.score >= GOOD
        if self.thumbs is not None:
            return self.thumbs == "up"
        return plan.gates.quality is None or self.label not in plan.gates.quality.bad_labels


def why_not(answer: AnswerId, table: Table, steering: Steering, wall_s: float) -> str:
    """Why feedback on an answer is no evidence, a key of NOT_COUNTED; "" where it is."""
    if not answer.rollout:
        return "no_rollout"
    if answer.rollout in steering.finished or plan_of(answer.rollout, table) is None:
        return "finished"
    return "late" if wall_s - answer.time_s > LATE_S else ""


def plan_of(rollout: str, table: Table) -> Rollout | None:
    """The plan with this id; None once the table has it no longer."""
    plans = (route.rollout for route in table.routes.values())
    return next((plan for plan in plans if plan is not None and plan.id == rollout), None)


def judgement_of(word: Feedback, answer: AnswerId, plan: Rollout) -> Judgement:
    """One vote an answer, however often its user says it."""
    return Judgement(
        rollout=answer.rollout,
        arm="canary" if answer.arm == "canary" else "stable",
        unit=answer.nonce.hex(),
        conversation=answer.conversation,
        good=word.is_good(plan),
        source="feedback",
    )
