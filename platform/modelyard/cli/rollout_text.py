"""The text of `modelyard rollout status` and `history`, from control's views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from modelyard.cli.rollout_tables import arm_lines, gate_lines, verdict_text
from modelyard.cli.rollout_words import author_of, brief, head, outlook, rollback_command, span
from modelyard.rollout.phases import OVER

STALE_S: Final = 15.0  # ingresses report each second


def status_text(views: Sequence[dict[str, Any]]) -> str:
    """Those under way in full, one that is over in a line."""
    if not views:
        return "no route of the table has a rollout"
    running = ["\n".join(status_lines(view)) for view in views if view["phase"] not in OVER]
    over = [brief(view) for view in views if view["phase"] in OVER]
    return "\n\n".join([*running, *(["\n".join(over)] if over else [])])


def status_lines(view: dict[str, Any]) -> list[str]:
    """All that one decides from: the verdict first, the figures below, the way back last."""
    lines = [head(view), *_indented(outlook(view)), *_indented(_circumstances(view))]
    if view["arms"]:
        lines += ["", *_indented(arm_lines(view["arms"]))]
    if view["gates"]:
        lines += ["", *_indented(gate_lines(view["gates"]))]
    end = f"to turn back now: {rollback_command(view)}"
    if view["phase"] in OVER:
        end = f"these figures ended it; every decision: modelyard rollout history {view['id']}"
    return [*lines, "", end]


def history_lines(decisions: Sequence[dict[str, Any]]) -> list[str]:
    """The oldest first, each with the evidence that it was made on."""
    lines = []
    for one in sorted(decisions, key=lambda one: -float(one["at_s_ago"])):
        lines.append(
            f"{span(one['at_s_ago']):>10} ago  {one['what']}, now {one['phase']} at "
            f"{one['percent']:g} %, by {one['author']}: {one['why']}"
        )
        lines += [f"{'':>16}{verdict_text(gate)}" for gate in one["verdicts"]]
    return lines


def _circumstances(view: dict[str, Any]) -> list[str]:
    lines = [f"{view['alias']}: stable {view['stable']}, canary {view['canary']}"]
    capacity = view["capacity"]
    if capacity is not None and view["phase"] not in OVER:
        step = "the next step" if view["percent"] < 100 else "this one"
        lines.append(
            f"canary replicas: {capacity['ready']} ready with {capacity['slots']} slots, "
            f"{capacity['needed_slots']} needed for {step}"
        )
    if view["author"]:
        lines.append(f"last moved by {author_of(view)}")
    age_s = view["evidence_age_s"]
    if age_s is not None and age_s > STALE_S and view["phase"] not in OVER:
        lines.append(f"NO EVIDENCE for {span(age_s)}: is there traffic, do the ingresses report?")
    return lines


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}".rstrip() for line in lines]
