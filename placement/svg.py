"""A plan as an SVG file: the same plan, the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from modelyard.config.fleet import FleetSpec
from placement.free import Free, room_text
from placement.plan import Plan
from placement.segments import colour_of, segments_of
from placement.show import summary_lines
from placement.summary import Row, rows_of, summary_of

_WIDTH: Final = 1000
_BAR_LEFT: Final = 220
_BAR_WIDTH: Final = 520
_ROW: Final = 30
_BAR_HEIGHT: Final = 20
_LEGEND_COLUMNS: Final = 3
_LEGEND_ROW: Final = 20
_CHARACTER: Final = 6.6  # of the 11 px font, so that a text is written only where it fits


def to_svg(spec: FleetSpec, plan: Plan) -> str:
    colours = {name: colour_of(index) for index, name in enumerate(sorted(plan.problem.item))}
    body: list[str] = []
    y = 30
    for pool, rows in rows_of(plan).items():
        own = spec.node_pools[pool]
        kind = own.accelerator or "CPU"
        title = f"{pool}: {kind}, zone {own.zone}, {own.memory_gb:g} GB, {own.sharing}"
        body.append(_text(16, y, title, "bold"))
        y += 12
        for row in rows:
            body += _row(plan, row, y, colours)
            y += _ROW
        y += 24
    body += _legend(colours, y)
    y += _LEGEND_ROW * -(-len(colours) // _LEGEND_COLUMNS) + 12
    for line in summary_lines(summary_of(spec, plan)):
        body.append(_text(16, y, line.strip()))
        y += 18
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" '
        f'height="{y}" font-family="sans-serif" font-size="11">'
    )
    background = f'<rect width="{_WIDTH}" height="{y}" fill="#ffffff"/>'
    return "\n".join([head, background, *body, "</svg>"]) + "\n"


def _legend(colours: dict[str, str], y: int) -> Iterator[str]:
    for index, (name, colour) in enumerate(colours.items()):
        x = 16 + index % _LEGEND_COLUMNS * ((_WIDTH - 32) // _LEGEND_COLUMNS)
        top = y + index // _LEGEND_COLUMNS * _LEGEND_ROW - 12
        yield _rect(x, top, 14, colour, name, height=14)
        yield _text(x + 20, top + 11, name)


def _row(plan: Plan, row: Row, y: int, colours: dict[str, str]) -> Iterator[str]:
    one = row.free
    more = len(row.names) - 1
    yield _text(16, y + 14, row.names[0] + (f" and {more} alike" if more else ""))
    yield from _bar(plan, one, y, colours)
    free = f"{room_text(one.free[0], one.place)} free"
    words = free + (", of no use to any model" if one.stranded[0] else "")
    yield _text(_BAR_LEFT + _BAR_WIDTH + 12, y + 14, words)


def _bar(plan: Plan, one: Free, y: int, colours: dict[str, str]) -> Iterator[str]:
    size = one.place.size[0]
    fill = "#e0b4b4" if one.stranded[0] else "#eeeeee"
    yield _rect(_BAR_LEFT, y, _BAR_WIDTH, fill, "free")
    at = 0
    for segment in segments_of(plan.problem, one):
        left = _BAR_LEFT + _BAR_WIDTH * at / size
        width = _BAR_WIDTH * segment.amount / size
        times = f" x{segment.replicas}" if segment.replicas > 1 else ""
        name = f"{segment.item}{times}"
        amount = room_text(segment.amount, one.place)
        yield _rect(left, y, width, colours[segment.item], f"{name}: {amount}")
        for words in (f"{name}, {amount}", name):
            if len(words) * _CHARACTER + 8 <= width:
                # White on the yellow could not be read, black can on all of them.
                yield _text(left + 4, y + 14, words)
                break
        at += segment.amount


def _rect(
    left: float, y: int, width: float, fill: str, title: str, height: int = _BAR_HEIGHT
) -> str:
    return (
        f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{fill}" '
        f'fill-opacity="0.75" stroke="#444444" stroke-width="0.5"><title>{escape(title)}</title>'
        "</rect>"
    )


def _text(x: float, y: int, words: str, weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}">{escape(words)}</text>'
