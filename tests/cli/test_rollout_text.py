"""What an on-call person reads of a rollout, letter by letter."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from modelyard.cli.rollout_text import history_lines, status_lines, status_text
from modelyard.cli.rollout_words import brief, outlook, span
from modelyard.rollout.verdict import Verdict
from tests.cli.rollout_views import ERRORS, LIMIT, TOKENS, TTFT, a_gate, a_view, an_arm

HOLDING = """\
rollout assistant-1.1: Holding, 25 % of conversations on the canary, step 3 of 5, for 5 min
  waits for the hold: 260 s of 600 are left
  next: 50 % by itself, after the hold and 300 samples, if no gate fails; a failing one does what \
its line says
  support-assistant: stable assistant@1.0.0, canary assistant@1.1.0
  canary replicas: 1 ready with 24 slots, 18 needed for the next step
  last moved by control: everything holds at 5 %: on to 25 %

  arm     requests  failed  errors  cancelled   ttft p50/p95    e2e p50/p95  tokens  good  same text
  stable      4120      41  1.00 %          3  0.21 / 0.44 s  1.90 / 4.20 s     182     -          -
  canary       188       2  1.06 %          0  0.21 / 0.44 s  1.90 / 4.20 s     182     -          -

  gate            state  stable  canary    evidence  samples  if it fails
  errors        passing  1.00 %  1.26 %  0.8 of 200      188     rollback
  ttft          waiting  0.44 s  0.45 s  1.1 of 200      188     rollback
      the 95th percentile is between 9 % lower and 14 % higher
  limit_errors  passing       -  1.26 %  0.8 of 200      188     rollback

to turn back now: modelyard rollout rollback assistant-1.1 --reason "..."
"""

ASKED = """\
rollout assistant-1.1: AwaitingApproval, 25 % of conversations on the canary, step 3 of 5, for 5 min
  waits for a human: answers are 31 % longer, and 15 % are allowed (tokens)
  next: nothing goes up by itself: `modelyard rollout approve assistant-1.1 --reason "..."` does \
(50 %); what fails badly is still rolled back
  support-assistant: stable assistant@1.0.0, canary assistant@1.1.0
  last moved by control: answers are 31 % longer, and 15 % are allowed (tokens)

  gate      state  stable  canary    evidence  samples  if it fails
  tokens  FAILING     182     238  260 of 200      188         hold
      tier=paid: answers are 31 % longer, and 15 % are allowed

to turn back now: modelyard rollout rollback assistant-1.1 --reason "..."
"""

ROLLED_BACK = """\
rollout assistant-1.1: RolledBack, 0 % of conversations on the canary, for 5 min
  next: assistant@1.0.0 answers support-assistant; a replica of assistant@1.1.0 stays for 55 min \
to look at. Another try needs another rollout id in the file
  support-assistant: stable assistant@1.0.0, canary assistant@1.1.0
  last moved by control: the canary fails 6 % of requests (limit_errors)

these figures ended it; every decision: modelyard rollout history assistant-1.1
"""


def text_of(**changes: Any) -> str:
    return "\n".join(status_lines(a_view(**changes))) + "\n"


def test_a_step_that_holds() -> None:
    assert text_of() == HOLDING


def test_a_rollout_that_asks_for_a_human() -> None:
    tokens = "answers are 31 % longer, and 15 % are allowed (tokens)"
    asked = text_of(
        phase="AwaitingApproval",
        left_s=None,
        waits_for=f"a human: {tokens}",
        reason=tokens,
        arms=[],
        gates=[TOKENS],
        capacity=None,
    )
    assert asked == ASKED


def test_a_rollback_says_why_and_what_stays() -> None:
    over = text_of(
        phase="RolledBack",
        step=None,
        percent=0.0,
        left_s=None,
        waits_for="",
        reason="the canary fails 6 % of requests (limit_errors)",
        arms=[],
        gates=[],
        capacity=None,
        kept_for_s=3300.0,
        evidence_age_s=4000.0,
    )
    assert over == ROLLED_BACK


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"frozen": "ops-1: an incident"}, "FROZEN by ops-1: an incident"),
        ({"frozen": True}, "FROZEN by an override"),
        ({"held": "the store was lost"}, "HELD (the store was lost)"),
    ],
)
def test_what_stops_everything_is_shouted_where_the_next_move_stands(
    changes: dict[str, Any], words: str
) -> None:
    _, first, second = outlook(a_view(**changes))
    assert first.startswith(f"next: NOTHING BY ITSELF, not even a rollback: {words}. ")
    assert second.startswith("otherwise: 50 %")
    assert words.split()[0] in brief(a_view(**changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"phase": "Pending", "percent": 0.0}, "nothing until `modelyard rollout start assistant-"),
        ({"phase": "Pending", "start": "automatic"}, "it begins when the canary is ready"),
        ({"phase": "Shadowing", "shadow_percent": 20.0}, "20 % of the stable version's requests"),
        ({"phase": "Step", "percent": 25.0}, "50 % as soon as the canary has room for it"),
        ({"percent": 100.0}, "promoted by itself, after the hold"),
        ({"phase": "Paused"}, "`modelyard rollout resume assistant-1.1` goes on from here"),
        (
            {"phase": "Promoted"},
            "into the file: `stable: assistant@1.1.0`, without canary",
        ),
        ({"phase": "Aborted"}, "assistant@1.0.0 answers support-assistant; the file no longer"),
        (
            {"phase": "RolledBack", "kept_for_s": 0.0},
            "assistant@1.1.0 may have no replica",
        ),
    ],
)
def test_every_phase_says_what_comes_next(changes: dict[str, Any], words: str) -> None:
    assert words in outlook(a_view(**changes))[-1]


def test_the_rest_of_the_hold_is_told_once() -> None:
    waits = "requests: the canary answered 188 of 300"
    assert outlook(a_view(waits_for=waits))[0] == f"waits for {waits}; 4 min of the hold left"
    assert "of the hold left" not in outlook(a_view())[0]


def test_what_a_human_let_pass_is_marked() -> None:
    text = text_of(gates=[TOKENS | {"accepted": True}])
    assert text.splitlines()[-4].split()[-3:] == ["200", "188", "accepted"]


def test_silence_is_no_good_news() -> None:
    assert "NO EVIDENCE for 40 s" in text_of(evidence_age_s=40.0)
    assert "NO EVIDENCE" not in text_of(evidence_age_s=None)


def test_judgements_and_shadow_matches_are_shown_where_there_are_any() -> None:
    shadow = an_arm("shadow", matches=180, compared=200, good=36, judged=40, error_share=None)
    text = text_of(arms=[an_arm("stable", ttft_p50_s=None, tokens_per_answer=None), shadow])
    assert "36 of 40  180 of 200" in text
    [stable] = [line for line in text.splitlines() if line.startswith("  stable ")]
    assert stable.split() == "stable 4120 41 1.00 % 3 - 1.90 / 4.20 s - - -".split()


def test_quality_is_a_share_and_its_evidence_speaks_for_the_canary() -> None:
    quality = a_gate("quality", "waiting", "", stable=0.9, canary=0.875, threshold=1.71)
    text = text_of(gates=[quality, a_gate("e2e", "passing", "", stable=None, evidence=None)])
    rows = [line.split() for line in text.splitlines()]
    shown = "quality waiting 90.00 % 87.50 % z 0.80, passes at 1.71 188 rollback"
    assert shown.split() in rows
    assert "e2e passing - 0.0126 s - 188 rollback".split() in rows


def test_all_rollouts_are_those_under_way_and_a_line_for_each_that_is_over() -> None:
    over = a_view(id="old", phase="Promoted", percent=100.0, reason="100 % held")
    assert status_text([over, a_view()]) == (
        f"{HOLDING}\nrollout old: Promoted, 100 % on the canary, by control: 100 % held"
    )
    assert (
        status_text([over]) == "rollout old: Promoted, 100 % on the canary, by control: 100 % held"
    )
    assert status_text([]) == "no route of the table has a rollout"
    gone = a_view(id="old", phase="Promoted", percent=100.0, in_table=False)
    assert status_text([gone]) == "rollout old: ended, Promoted; the table no longer has it"


def as_control_keeps_it(gate: dict[str, Any]) -> dict[str, Any]:
    """A verdict alone: what the plan makes of it is not part of a decision."""
    return {field.name: gate[field.name] for field in fields(Verdict)}


def test_history_is_in_the_order_of_events_with_its_evidence() -> None:
    def decision(at_s_ago: float, **changes: Any) -> dict[str, Any]:
        one = {"at_s_ago": at_s_ago, "author": "control", "what": "step", "phase": "Holding"}
        return one | {"why": "the first step: 1 %", "percent": 1.0, "verdicts": []} | changes

    latest = decision(
        30.0,
        what="rolled_back",
        phase="RolledBack",
        percent=0.0,
        why="6 % fail (limit_errors)",
        verdicts=[as_control_keeps_it(ERRORS), as_control_keeps_it(TOKENS)],
    )
    assert history_lines([latest, decision(700.0)]) == [
        "    11 min ago  step, now Holding at 1 %, by control: the first step: 1 %",
        "      30 s ago  rolled_back, now RolledBack at 0 %, by control: 6 % fail (limit_errors)",
        "                errors passing (1.00 % and 1.26 %, evidence 0.8 of 200)",
        "                tokens FAILING (182 and 238, evidence 260 of 200)",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (12_000, "3 h 20 min"),
        (183_600, "2 d 3 h"),
    ],
)
def test_a_span_has_two_figures_at_most(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_passing_gate_needs_no_words() -> None:
    text = text_of(gates=[ERRORS, TTFT, LIMIT])
    assert ERRORS["words"] not in text
    assert TTFT["words"] in text
