"""The columns of a table of figures, for the terminal and for the page."""

from __future__ import annotations

from typing import Final, Literal

from modelyard.bench.group_record import GroupRecord, merged
from modelyard.bench.latency_record import LatencyRecord
from modelyard.bench.result import MIN_WINDOW_S, Level, Result

HEAD: Final = (
    "offered/s",
    "good %",
    "done/s",
    "good/s",
    "tokens/s",
    "rejected",
    "errors",
    "e2e p50",
    "p90",
    "p99",
    "max",
    "ttft p50",
    "p99",
    "itl p50",
    "p99",
)
MEANING: Final = (
    "done/s, good/s and tokens/s: what ended within the measured window; good %: of all that was "
    "due in it, whenever it ended"
)


def figures(group: GroupRecord, window_s: float) -> list[str]:
    """Cells under HEAD. Times in ms; rejected and errors are requests that ended so.

    Dashes where the run was stopped in the warm-up, before there was a window.
    """
    if window_s < MIN_WINDOW_S:
        return ["-"] * len(HEAD)
    return [
        f"{group.offered / window_s:.2f}",
        "-" if group.good_percent is None else f"{group.good_percent:.1f}",
        f"{group.completed_in_window / window_s:.2f}",
        f"{group.good_in_window / window_s:.2f}",
        f"{group.output_tokens_in_window / window_s:.0f}",
        str(group.refused),
        str(group.failed),
        *_times(group.e2e, "p50_ms", "p90_ms", "p99_ms", "max_ms"),
        *_times(group.ttft, "p50_ms", "p99_ms"),
        *_times(group.itl, "p50_ms", "p99_ms"),
    ]


def by_rate(result: Result) -> list[list[str]]:
    """A row for each rate: rate, figures, retries, lateness."""
    return [
        [f"{level.rate_per_s:g}", *figures(level.total, level.window_s), *_sending(level)]
        for level in result.levels
    ]


def by_stream(result: Result) -> list[list[str]]:
    """A row for each rate and stream, none for a workload of one stream."""
    streams = {stream.name: stream for stream in result.workload.streams}
    if len(streams) == 1:
        return []
    return [
        [
            f"{level.rate_per_s:g}",
            name,
            streams[name].tenant or "-",
            streams[name].priority or "-",
            *figures(group, level.window_s),
        ]
        for level in result.levels
        for name, group in level.streams.items()
    ]


def by_label(result: Result, label: Literal["tenant", "priority"]) -> list[list[str]]:
    """A row for each rate and tenant (priority), where one of them has several streams."""
    members: dict[str, list[str]] = {}
    for stream in result.workload.streams:
        members.setdefault(getattr(stream, label) or "-", []).append(stream.name)
    if len(members) in (1, len(result.workload.streams)):
        return []
    return [
        [
            f"{level.rate_per_s:g}",
            name,
            *figures(merged([level.streams[one] for one in streams]), level.window_s),
        ]
        for level in result.levels
        for name, streams in members.items()
    ]


RATE_HEAD: Final = ("rate", *HEAD, "attempts", "late p99")
STREAM_HEAD: Final = ("rate", "stream", "tenant", "priority", *HEAD)


def _sending(level: Level) -> list[str]:
    attempts = level.total.attempts_per_request
    return ["-" if attempts is None else f"{attempts:.2f}", *_times(level.total.late, "p99_ms")]


def _times(latency: LatencyRecord, *names: str) -> list[str]:
    values = [getattr(latency, name) for name in names]
    return ["-" if value is None else _ms(value) for value in values]


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"
