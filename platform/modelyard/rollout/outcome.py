"""What became of one request of a rollout: the evidence that gates look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# shadow: the canary's answer to a copy that no user saw.
OutcomeArm = Literal["stable", "canary", "shadow"]
Source = Literal["feedback", "judge", "replay"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request that the draw of a rollout sent to an arm, or a shadow copy of one.

    conversation: a short hash, "" where it belongs to none and stands for itself. code: of the
    error tree, "ok" where it was answered. failed: it counts as an error (server errors,
    timeouts, cancelled by the server). refused: the version itself answered a 4xx, which is an
    error where the other arm would not have: it counts in the comparison, not against a limit.
    cancelled: its client left, which counts for nothing and is shown. ttft_s: None where it was not
    streamed or nothing came; e2e_s: None unless answered.
    pair: joins a shadow copy with the request it copies, "" for others. match: of a shadow copy,
    whether both answers are the same where they should be (greedy); None where nobody can say.
    """

    rollout: str
    arm: OutcomeArm
    tier: str
    label: str
    conversation: str
    code: str
    failed: bool
    cancelled: bool
    ttft_s: float | None
    e2e_s: float | None
    output_tokens: int
    pair: str = ""
    match: bool | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """A word on the quality of one answer.

    unit: what is judged once (the nonce of the answer's id, a prompt of a golden set). pair: joins
    the judgements on both arms' answers to one prompt, "" for others.
    """

    rollout: str
    arm: OutcomeArm
    unit: str
    conversation: str
    good: bool
    source: Source
    pair: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeBatch:
    """What one ingress saw in about a second.

    number: counts an ingress's batches from 1; one that comes twice is taken once. rate: the share
    of outcomes that is here, 1.0 for all of them; both arms are sampled alike.
    """

    number: int
    outcomes: tuple[Outcome, ...]
    judgements: tuple[Judgement, ...] = ()
    rate: float = 1.0
