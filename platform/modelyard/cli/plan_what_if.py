"""`modelyard plan --what-if`: the fleet as it is beside the fleet as it would be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import typer

from modelyard.cli.plan_check import Fleet
from placement.infeasible import Infeasible
from placement.plan import Cell, Plan
from placement.planned import make_plan
from placement.record import plan_record
from placement.summary import Summary, summary_of
from placement.what_if import Supposed, suppose


def tell_what_if(
    fleet: Fleet,
    previous: Sequence[Cell],
    lost: frozenset[str],
    words: Sequence[str],
    *,
    as_json: bool,
) -> bool:
    """Print both; whether everything has a place then. Raises ConfigError for odd words."""
    start = Supposed(fleet.spec, fleet.memory, lost)
    then = start
    for one in words:
        then = suppose(then, one)
    before = _plan(start, previous)
    after = _plan(then, before.cells)
    why = _why_not(then, before.cells) if after.packing.unplaced else ""
    if as_json:
        record = {
            "what_if": list(words),
            "before": plan_record(start.spec, before),
            "after": plan_record(then.spec, after),
            "why_not": why,
        }
        typer.echo(json.dumps(record, indent=2))
    else:
        typer.echo("\n".join(_lines(start, before, then, after, words)))
        if why:
            typer.echo(f"then {why}")
    return not after.packing.unplaced


def _plan(supposed: Supposed, previous: Sequence[Cell]) -> Plan:
    return make_plan(supposed.spec, supposed.memory, previous, lost=supposed.lost, partial=True)


def _why_not(supposed: Supposed, previous: Sequence[Cell]) -> str:
    try:
        make_plan(supposed.spec, supposed.memory, previous, lost=supposed.lost)
    except Infeasible as error:
        return str(error)
    return ""


def _lines(
    start: Supposed, before: Plan, then: Supposed, after: Plan, words: Sequence[str]
) -> Iterator[str]:
    old, new = summary_of(start.spec, before), summary_of(then.spec, after)
    yield f"what if {' and '.join(words)}"
    yield f"{'':<24}{'now':>14}{'then':>14}"
    for (name, left), (_, right) in zip(_figures(old), _figures(new), strict=True):
        yield f"{name:<24}{left:>14}{right:>14}"
    changes = list(_changes(before, after))
    yield from changes or ["nothing is placed elsewhere"]


def _figures(summary: Summary) -> Iterator[tuple[str, str]]:
    yield "replicas placed", f"{summary.replicas}"
    yield "without a place", f"{sum(count for _, count in summary.unplaced)}"
    yield "places in use", f"{summary.used} of {summary.places}"
    yield "places, at least", f"{summary.bound_places}"
    yield "machines in use, hour", f"{summary.in_use_per_hour:,.2f}"
    yield "all machines, hour", f"{summary.all_per_hour:,.2f}"


def _changes(before: Plan, after: Plan) -> Iterator[str]:
    """What is placed, removed or moved, place by place."""
    old, new = before.packing.at, after.packing.at
    for key in sorted({*old, *new}):
        more = new.get(key, 0) - old.get(key, 0)
        if more:
            yield f"  {'+' if more > 0 else '-'} {key[0]} x{abs(more)} at {key[1]}"
    for item, count in after.packing.unplaced:
        yield f"  ! {item} x{count} without a place"
