"""What a gate says of a canary."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GateState(StrEnum):
    """waiting: not enough evidence either way. passing: inside its margin, or nothing against it
    at the planned number of samples. failing: worse, and by more than its margin."""

    WAITING = "waiting"
    PASSING = "passing"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One gate's word.

    gate: `errors`, `ttft`, `e2e`, `tokens`, `quality`, or of the safety limits `limit_errors`,
    `limit_ttft`, `limit_e2e`. words: one sentence for a human. stable and canary: the figures
    compared (shares 0 to 1, seconds, tokens), None before there are any. evidence: against the
    canary, an e-value (of quality a z score), and threshold: where it decides. samples: of the
    canary. where: the slice that fails (`tier=paid`, `label=retrieval`), "" for all requests.
    """

    gate: str
    state: GateState
    words: str
    stable: float | None = None
    canary: float | None = None
    evidence: float | None = None
    threshold: float | None = None
    samples: int = 0
    where: str = ""
