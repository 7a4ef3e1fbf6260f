"""The result as one HTML page that needs nothing else: no script, no font, no server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from modelyard.bench import columns, plots, sentences
from modelyard.bench.result import Result

_STYLE: Final = """
body { font: 14px/1.5 system-ui, sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1em 0; }
th, td { text-align: right; padding: 2px 8px; border-bottom: 1px solid #ddd; }
.warning { color: #a00; font-weight: bold; }
svg { max-width: 100%; height: auto; display: block; margin: 1em 0; }
pre { background: #f6f6f6; padding: 1em; overflow: auto; }
"""


def as_html(result: Result) -> str:
    return "\n".join(_lines(result))


def _lines(result: Result) -> Iterator[str]:
    title = f"modelyard bench of {escape(result.options.url)}"
    yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
    yield f"<p>{escape(sentences.verdict(result))} SLO: {escape(str(result.workload.slo))}.</p>"
    for warning in sentences.warnings(result):
        yield f'<p class="warning">{escape(warning)}.</p>'
    for note in result.notes:
        yield f"<p>{escape(note)}</p>"
    yield "<h2>By rate</h2><p>Times in ms, from when each request was due.</p>"
    yield f"<p>{escape(columns.MEANING)}.</p>"
    yield _table(columns.RATE_HEAD, columns.by_rate(result))
    yield from _plots(result)
    if rows := columns.by_stream(result):
        yield "<h2>By stream</h2>" + _table(columns.STREAM_HEAD, rows)
    for label in ("tenant", "priority"):
        if rows := columns.by_label(result, label):
            yield f"<h2>By {label}</h2>" + _table(("rate", label, *columns.HEAD), rows)
    yield from _causes(result)
    yield from _reproduction(result)
    yield "</body></html>"


def _plots(result: Result) -> Iterator[str]:
    yield "<h2>Latency by rate</h2>" + plots.as_svg(plots.latency_by_rate(result))
    yield "<h2>Goodput by rate</h2>" + plots.as_svg(plots.goodput_by_rate(result))
    yield "<h2>Distribution</h2>" + plots.as_svg(plots.distribution(result))
    held = [level for level in result.levels if level.rate_per_s == result.highest_held_per_s]
    shown = {level.rate_per_s: level for level in (*held, result.levels[-1])}
    for rate_per_s, level in shown.items():
        yield f"<h2>Over time, at {rate_per_s:g}/s</h2>"
        yield plots.as_svg(plots.over_time(level, result.options.warmup_s))


def _causes(result: Result) -> Iterator[str]:
    lines = [
        f"<li>{level.rate_per_s:g}/s {escape(cause)}</li>"
        for level in result.levels
        for cause in sentences.causes(level)
    ]
    if lines:
        yield "<h2>Rejections and errors, by attempt</h2><ul>" + "".join(lines) + "</ul>"


def _reproduction(result: Result) -> Iterator[str]:
    """All that was asked: `--json` holds the same, and the histograms."""
    record = json.loads(result.as_json())
    kept = {name: value for name, value in record.items() if name != "levels"}
    yield f"<h2>To reproduce</h2><pre>{escape(json.dumps(kept, indent=1))}</pre>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"
