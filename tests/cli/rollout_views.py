"""Control's view of a rollout as its contract has it, for the tests of the command."""

from __future__ import annotations

from typing import Any


def an_arm(arm: str, **changes: Any) -> dict[str, Any]:
    figures = {
        "arm": arm,
        "requests": 4120,
        "failed": 41,
        "cancelled": 3,
        "error_share": 0.00995,
        "ttft_p50_s": 0.21,
        "ttft_p95_s": 0.44,
        "e2e_p50_s": 1.9,
        "e2e_p95_s": 4.2,
        "tokens_per_answer": 182.0,
        "matches": 0,
        "compared": 0,
        "good": 0,
        "judged": 0,
    }
    return figures | changes


def a_gate(gate: str, state: str, words: str, **changes: Any) -> dict[str, Any]:
    figures = {
        "gate": gate,
        "state": state,
        "words": words,
        "stable": 0.01,
        "canary": 0.0126,
        "evidence": 0.8,
        "threshold": 200.0,
        "samples": 188,
        "where": "",
        "on_fail": "rollback",
        "accepted": False,
    }
    return figures | changes


ERRORS = a_gate("errors", "passing", "no sign of more errors")
TTFT = a_gate(
    "ttft",
    "waiting",
    "the 95th percentile is between 9 % lower and 14 % higher",
    stable=0.44,
    canary=0.45,
    evidence=1.1,
)
TOKENS = a_gate(
    "tokens",
    "failing",
    "answers are 31 % longer, and 15 % are allowed",
    stable=182.0,
    canary=238.4,
    evidence=260.0,
    on_fail="hold",
    where="tier=paid",
)
LIMIT = a_gate("limit_errors", "passing", "below 5 %", stable=None)


def a_view(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "id": "assistant-1.1",
        "alias": "support-assistant",
        "stable": "assistant@1.0.0",
        "canary": "assistant@1.1.0",
        "phase": "Holding",
        "step": 2,
        "steps_percent": [1, 5, 25, 50, 100],
        "percent": 25.0,
        "since_s": 340.0,
        "left_s": 260.0,
        "samples": 188,
        "min_samples": 300,
        "waits_for": "the hold: 260 s of 600 are left",
        "frozen": "",
        "held": "",
        "arms": [
            an_arm("stable"),
            an_arm("canary", requests=188, failed=2, cancelled=0, error_share=0.0106),
        ],
        "gates": [ERRORS, TTFT, LIMIT],
        "capacity": {"ready": 1, "slots": 24, "needed_slots": 18},
        "author": "control",
        "reason": "everything holds at 5 %: on to 25 %",
        "kept_for_s": None,
        "evidence_age_s": 0.8,
        "shadow_percent": 0.0,
        "start": "manual",
        "in_table": True,
    }
    return whole | changes
