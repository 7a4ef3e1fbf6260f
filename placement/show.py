"""A plan as lines for a terminal: each place with a bar, then the figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from modelyard.config.fleet import FleetSpec, NodePool
from placement.free import Free, room_text
from placement.money import price_text
from placement.plan import Plan
from placement.problem import Place
from placement.segments import Segment, marks_of, segments_of
from placement.summary import Row, Summary, rows_of, summary_of

WIDTH: Final = 32


def plan_lines(spec: FleetSpec, plan: Plan) -> Iterator[Text]:
    """Plain text where the terminal has no colours: a letter says what the colour says."""
    marks = marks_of(plan.problem)
    for pool, rows in rows_of(plan).items():
        yield Text(_heading(pool, spec.node_pools[pool], rows[0].free.place), style="bold")
        name_width = max(len(_names(row)) for row in rows)
        for row in rows:
            yield _row(plan, row, marks, name_width)
    yield Text("")
    yield from (Text(line) for line in _summary(spec, plan))
    for name, area in sorted(plan.swap_areas.items()):
        members = ", ".join(f"{version} {gb:g} GB" for version, gb in area.models.items())
        yield Text(f"swap area {name}: {area.memory_gb:g} GB, in turn: {members}")


def _summary(spec: FleetSpec, plan: Plan) -> Iterator[str]:
    is_spread = any(item.per_zone is not None for item in plan.problem.items)
    return summary_lines(summary_of(spec, plan), is_spread=is_spread)


def summary_lines(summary: Summary, *, is_spread: bool = False) -> Iterator[str]:
    """is_spread: over zones, of which the bound knows little: what is above it may be needed."""
    bound = summary.bound_places
    least = f"all of it takes at least {bound}" if summary.unplaced else f"at least {bound} needed"
    placed = f"{summary.replicas} {'replica' if summary.replicas == 1 else 'replicas'}"
    yield f"{placed} at {summary.used} of {summary.places} places; {least}"
    for item, count in summary.unplaced:
        yield f"  WITHOUT A PLACE: {item}, {count} {'replica' if count == 1 else 'replicas'}"
    cost = f"cost of these places, each a part of its machine, {summary.price:,.2f} per hour"
    if summary.unplaced:
        yield f"{cost}; all of it costs at least {summary.bound:,.2f}"
    elif summary.gap is not None:
        best = "proved best" if summary.proved else f"at most {summary.gap:.2%} above the best"
        yield f"{cost}, bound {summary.bound:,.2f}: {best}"
        if is_spread and not summary.proved:
            yield "the bound leaves out what a spread over zones costs: the best may be no better"
    yield f"machines in use: {price_text(summary.in_use_per_hour)}"
    yield f"all machines:    {price_text(summary.all_per_hour)}"


def _heading(name: str, pool: NodePool, place: Place) -> str:
    if pool.accelerator is None:
        kind = f"CPU, {pool.memory_gb:g} GB and {pool.cpus:g} CPUs"
    elif pool.sharing == "shared":
        kind = f"{pool.accelerator}, each device of {pool.memory_gb:g} GB shared"
    else:
        kind = f"{pool.accelerator}, {pool.devices} whole devices of {pool.memory_gb:g} GB"
    return f"{name}, zone {place.zone}: {kind}, {pool.price_per_hour:g} per machine and hour"


def _names(row: Row) -> str:
    more = len(row.names) - 1
    return row.names[0] + (f" and {more} alike" if more else "")


def _row(plan: Plan, row: Row, marks: dict[str, tuple[str, str]], name_width: int) -> Text:
    one = row.free
    line = Text(f"  {_names(row):<{name_width}}  ")
    line.append_text(bar(one, segments_of(plan.problem, one), marks))
    used = room_text(one.used[0], one.place)
    line.append(f"  {used} used, {room_text(one.free[0], one.place)} free")
    if one.stranded[0]:
        line.append(", of no use to any model", style="yellow")
    for segment in segments_of(plan.problem, one):
        mark, style = marks[segment.item]
        line.append("  ")
        line.append(mark, style=style)
        times = f" x{segment.replicas}" if segment.replicas > 1 else ""
        line.append(f" {segment.item}{times}")
    return line


def bar(one: Free, segments: list[Segment], marks: dict[str, tuple[str, str]]) -> Text:
    """WIDTH characters of the place's first size; whatever is used shows at least one."""
    size = one.place.size[0]
    drawn = Text("[")
    left = WIDTH
    for segment in segments:
        mark, style = marks[segment.item]
        width = min(left, max(1, round(WIDTH * segment.amount / size)))
        drawn.append(mark * width, style=style)
        left -= width
    drawn.append("." * left, style="dim")
    return drawn.append("]")
