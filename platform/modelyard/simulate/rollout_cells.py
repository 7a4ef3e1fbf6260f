"""The table of simulated rollouts, in Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from modelyard.rollout.verdict import GateState
from modelyard.simulate.rollout_bounds import median_interval, share_interval
from modelyard.simulate.rollout_exact import Chances
from modelyard.simulate.rollout_quality import QualityRow
from modelyard.simulate.rollout_rows import Row
from modelyard.simulate.rollout_rules import RuleShare
from modelyard.simulate.rollout_share import Share, quantile

COLUMNS: Final = (
    "situation",
    "runs",
    "rolled back",
    "after minutes: median; 90 %; 99 % of all runs",
    "a human asked",
    "open at the end",
    "point rule",
    "goal",
    "seeds from",
)
QUALITY_COLUMNS: Final = (
    "the canary is",
    "promoted, exactly",
    "failed",
    "for a human",
    "goal",
    "promoted of runs",
    "seeds from",
)


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def of_row(row: Row, share: Share, point: Share | None, seed: int) -> tuple[str, ...]:
    return (
        row.name,
        f"{share.runs:,}",
        _share(share.rolled_back, share.runs) + _by(share.gates) + _early(share),
        _times(share),
        _asked(share),
        f"{share.open}" if share.open else "-",
        _point(point),
        "; ".join(f"{wanted}: {says}" for wanted, says in row.goal.parts(share)) or "-",
        f"{seed:,}",
    )


def of_quality(
    row: QualityRow, exact: Chances, states: Sequence[GateState], seed: int
) -> tuple[str, ...]:
    wanted = "-"
    if row.most < 1:
        wanted = f"<= {100 * row.most:g} %: {row.says(exact)}"
    if row.least > 0:
        wanted = f">= {100 * row.least:g} %: {row.says(exact)}"
    return (
        row.name,
        _percent(exact.promoted),
        _percent(exact.failed),
        _percent(exact.undecided),
        wanted,
        f"{_share(states.count(GateState.PASSING), len(states))} of {len(states):,}",
        f"{seed:,}",
    )


def of_rule(share: RuleShare) -> str:
    minutes = f" ({share.median_s / 60:.0f} min)" if math.isfinite(share.median_s) else ""
    return f"{100 * share.rolled_back:.1f} %{minutes}"


def _share(happened: int, runs: int) -> str:
    low, high = share_interval(happened, runs)
    return f"{happened}: {_percent(happened / runs)} [{_percent(low)}, {_percent(high)}]"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _by(gates: Counter[str]) -> str:
    """Which gates, the most frequent first."""
    return f" ({', '.join(f'{gate} {count}' for gate, count in gates.most_common())})" * bool(gates)


def _early(share: Share) -> str:
    return f"; {share.early} before the fault" if share.early else ""


def _times(share: Share) -> str:
    if share.rolled_back * 2 <= share.runs:
        return "-"
    low, high = median_interval(share.times_s)
    median, most, nearly = (_minutes(quantile(share.times_s, part)) for part in (0.5, 0.9, 0.99))
    return f"{median} [{_minutes(low)}, {_minutes(high)}]; {most}; {nearly}"


def _asked(share: Share) -> str:
    if not share.asked:
        return "-"
    after = _minutes(quantile(share.asked_s, 0.5))
    return f"{_percent(share.asked / share.runs)}{_by(share.asked_by)}, after {after}"


def _point(share: Share | None) -> str:
    if share is None:
        return "-"
    times = [one for one in share.times_s if math.isfinite(one)]
    after = f", after {_minutes(quantile(times, 0.5))}" if times else ""
    return f"{_percent(share.rolled_back / share.runs)} of {share.runs}{after}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}" if math.isfinite(seconds) else "never"
