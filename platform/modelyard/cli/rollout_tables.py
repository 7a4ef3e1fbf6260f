"""The two tables of a rollout: its arms side by side, and each gate with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_ARMS: Final = (
    *("arm", "requests", "failed", "errors", "cancelled"),
    *("ttft p50/p95", "e2e p50/p95", "tokens", "good", "same text"),
)
_GATES: Final = ("gate", "state", "stable", "canary", "evidence", "samples", "if it fails")
_NONE: Final = "-"


def arm_lines(arms: Sequence[dict[str, Any]]) -> list[str]:
    return columns([_ARMS, *(_arm(arm) for arm in arms)])


def gate_lines(gates: Sequence[dict[str, Any]]) -> list[str]:
    """A line of figures each, and below those that are not passing the gate's own words."""
    figures = columns([_GATES, *(_gate(gate) for gate in gates)])
    lines = figures[:1]
    for gate, line in zip(gates, figures[1:], strict=True):
        lines.append(line)
        if gate["words"] and gate["state"] != "passing":
            slice_ = f"{gate['where']}: " if gate["where"] else ""
            lines.append(f"    {slice_}{gate['words']}")
    return lines


def verdict_text(gate: dict[str, Any]) -> str:
    """`errors FAILING (1.00 % and 6.00 %, evidence 212 of 200)`."""
    _, state, stable, canary, evidence, _ = _measured(gate)
    return f"{gate['gate']} {state} ({stable} and {canary}, evidence {evidence})"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, the others to the right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _arm(arm: dict[str, Any]) -> tuple[str, ...]:
    return (
        arm["arm"],
        str(arm["requests"]),
        str(arm["failed"]),
        _percent(arm["error_share"]),
        str(arm["cancelled"]),
        _seconds(arm["ttft_p50_s"], arm["ttft_p95_s"]),
        _seconds(arm["e2e_p50_s"], arm["e2e_p95_s"]),
        _NONE if arm["tokens_per_answer"] is None else f"{arm['tokens_per_answer']:.0f}",
        f"{arm['good']} of {arm['judged']}" if arm["judged"] else _NONE,
        f"{arm['matches']} of {arm['compared']}" if arm["compared"] else _NONE,
    )


def _gate(gate: dict[str, Any]) -> tuple[str, ...]:
    return (*_measured(gate), "accepted" if gate["accepted"] else gate["on_fail"])


def _measured(gate: dict[str, Any]) -> tuple[str, ...]:
    """What a verdict says; what is done about it a decision of the past does not tell."""
    state = str(gate["state"])
    return (
        gate["gate"],
        state.upper() if state == "failing" else state,
        _figure(gate["gate"], gate["stable"]),
        _figure(gate["gate"], gate["canary"]),
        _evidence(gate),
        str(gate["samples"]),
    )


def _figure(gate: str, value: float | None) -> str:
    kind = gate.removeprefix("limit_")
    if value is None:
        return _NONE
    if kind in ("errors", "quality"):
        return _percent(value)
    return f"{value:.0f}" if kind == "tokens" else f"{value:.3g} s"


def _evidence(gate: dict[str, Any]) -> str:
    evidence, threshold = gate["evidence"], gate["threshold"]
    if evidence is None or threshold is None:
        return _NONE
    if gate["gate"] == "quality":  # a z score, which speaks for the canary
        return f"z {evidence:.2f}, passes at {threshold:.2f}"
    return f"{_number(evidence)} of {_number(threshold)}"


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}" if value < 1e6 else f"{value:.0e}"


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{100 * share:.2f} %"


def _seconds(median: float | None, p95: float | None) -> str:
    return _NONE if median is None or p95 is None else f"{_time(median)} / {_time(p95)} s"


def _time(seconds: float) -> str:
    """A small model answers in milliseconds."""
    return f"{seconds:.3f}" if seconds < 0.1 else f"{seconds:.2f}"
