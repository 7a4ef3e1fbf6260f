"""The plots of a result, as matplotlib figures: no pyplot, so no state and no display."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modelyard.bench.result import Level, Result

SIZE: Final = (7.2, 3.8)  # inches, as wide as the page
PERCENTILES: Final = (("p50_ms", "p50"), ("p90_ms", "p90"), ("p99_ms", "p99"))


def as_svg(figure: Figure) -> str:
    """An `<svg>` element to put into a page."""
    text = io.StringIO()
    with _style():
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def latency_by_rate(result: Result) -> Figure:
    figure, axes = _one("rate offered, 1/s", "ms")
    rates = [level.rate_per_s for level in result.levels]
    for name, label in PERCENTILES:
        _line(axes, rates, [getattr(one.total.e2e, name) for one in result.levels], f"e2e {label}")
    if any(level.total.ttft.count for level in result.levels):
        _line(axes, rates, [one.total.ttft.p99_ms for one in result.levels], "ttft p99", "--")
    axes.set_yscale("log")
    _knee(axes, result)
    axes.legend()
    return figure


def goodput_by_rate(result: Result) -> Figure:
    figure, axes = _one("rate offered, 1/s", "requests/s")
    levels = _measured(result)
    rates = [level.rate_per_s for level in levels]
    _line(axes, rates, rates, "offered", ":")
    _line(
        axes,
        rates,
        [level.goodput_per_s for level in levels],
        "good (within the SLO), done in the window",
    )
    for name, label in (("refused", "rejected"), ("failed", "failed")):
        per_s = [getattr(level.total, name) / level.window_s for level in levels]
        _line(axes, rates, per_s, label)
    _knee(axes, result)
    axes.legend()
    return figure


def distribution(result: Result) -> Figure:
    """How many requests took no longer, at each rate."""
    figure, axes = _one("end to end, ms", "share of completed")
    for level in result.levels:
        points = list(level.total.e2e.decoded().cumulated())
        if points:
            times, shares = zip(*points, strict=True)
            axes.step(times, shares, where="post", label=f"{level.rate_per_s:g}/s", linewidth=1)
    axes.set_xscale("log")
    if axes.lines:
        axes.legend(fontsize=7, ncols=2)
    return figure


def over_time(level: Level, warmup_s: float) -> Figure:
    """Latency above, requests below, by when they were due; the warm-up is grey."""
    with _style():
        figure = Figure(figsize=(SIZE[0], 5.0), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
    slices, per_s = level.timeline.slices, 1 / level.timeline.interval_s
    times = [one.at_s for one in slices]
    for name, label in (*PERCENTILES, ("max_ms", "max")):
        _line(above, times, [getattr(one.e2e, name) for one in slices], label, marker="")
    for name, label in (("offered", "offered"), ("good", "good"), ("refused", "rejected"),
                        ("failed", "failed")):  # fmt: skip
        _line(below, times, [getattr(one, name) * per_s for one in slices], label, marker="")
    for axes, label in ((above, "end to end, ms"), (below, "requests/s")):
        axes.axvspan(0, warmup_s, color="0.9")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, ncols=4)
    below.set_xlabel("when due, seconds from the start")
    return figure


def _style() -> AbstractContextManager[None]:
    """Text stays text (small, and it can be searched); one salt: one result gives one file."""
    return mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "modelyard", "font.size": 9.0})


def _one(x: str, y: str) -> tuple[Figure, Axes]:
    with _style():
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    return figure, axes


def _line(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float | None],
    label: str,
    style: str = "-",
    marker: str = "o",
) -> None:
    values = [float("nan") if value is None else value for value in y]
    axes.plot(x, values, style, label=label, marker=marker, markersize=3, linewidth=1.2)


def _knee(axes: Axes, result: Result) -> None:
    held = result.highest_held_per_s
    if held is not None:
        label = f"held up to {held:g}/s, no knee seen"
        if result.knee_per_s is not None:
            label = f"knee {held:g}/s"
        axes.axvline(held, color="0.4", linestyle="--", linewidth=1, label=label)


def _measured(result: Result) -> list[Level]:
    """Not those stopped in the warm-up, whose zeros are no measurement."""
    return [level for level in result.levels if not level.stopped_in_warmup]
