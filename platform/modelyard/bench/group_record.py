"""The figures of a group of requests in the result file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Self

from modelyard.bench.figures import Figures
from modelyard.bench.histogram import COARSE
from modelyard.bench.latency_record import LatencyRecord
from modelyard.bench.timeline import Slice, Timeline
from modelyard.config.frozen import Frozen

COUNTS: Final = (
    "offered",
    "completed",
    "good",
    "refused",
    "failed",
    "unfinished",
    "unmeasured",
    "completed_in_window",
    "good_in_window",
    "output_tokens_in_window",
    "under_way_halfway",
    "under_way_at_end",
    "due_in_second_half",
    "attempts",
    "input_tokens",
    "output_tokens",
)
LATENCIES: Final = ("e2e", "ttft", "itl", "rejected_after", "late", "connection_wait")


class Cause(Frozen):
    """code: the HTTP status, or the code of an event, or the client's word where there is none.

    message: one that the server gave with it, "" where it gave none.
    """

    code: str
    reason: str
    count: int
    message: str = ""


class GroupRecord(Frozen):
    """As `Figures`; good_percent of what was offered, attempts_per_request with the retries."""

    offered: int
    completed: int
    good: int
    refused: int
    failed: int
    unfinished: int
    unmeasured: int
    completed_in_window: int
    good_in_window: int
    output_tokens_in_window: int
    under_way_halfway: int
    under_way_at_end: int
    due_in_second_half: int
    attempts: int
    input_tokens: int
    output_tokens: int
    good_percent: float | None
    attempts_per_request: float | None
    rejections: tuple[Cause, ...]
    errors: tuple[Cause, ...]
    e2e: LatencyRecord
    ttft: LatencyRecord
    itl: LatencyRecord
    rejected_after: LatencyRecord
    late: LatencyRecord
    connection_wait: LatencyRecord

    @classmethod
    def of(cls, figures: Figures) -> Self:
        record: dict[str, object] = {name: getattr(figures, name) for name in COUNTS}
        record |= {name: LatencyRecord.of(getattr(figures, name)) for name in LATENCIES}
        return cls.model_validate(
            record
            | {
                "good_percent": figures.good_percent,
                "attempts_per_request": figures.attempts_per_request,
                "rejections": _causes(figures.rejections, figures.messages),
                "errors": _causes(figures.errors, figures.messages),
            }
        )

    def figures(self) -> Figures:
        """Raises ConfigError for a histogram that is none."""
        figures = Figures(
            rejections=Counter({(one.code, one.reason): one.count for one in self.rejections}),
            errors=Counter({(one.code, one.reason): one.count for one in self.errors}),
            messages={
                (one.code, one.reason): one.message
                for one in (*self.rejections, *self.errors)
                if one.message
            },
        )
        for name in COUNTS:
            setattr(figures, name, getattr(self, name))
        for name in LATENCIES:
            setattr(figures, name, getattr(self, name).decoded())
        return figures


def merged(records: Iterable[GroupRecord]) -> GroupRecord:
    """The figures of several groups as those of one. Raises ConfigError."""
    figures = Figures()
    for record in records:
        figures.add(record.figures())
    return GroupRecord.of(figures)


def _causes(
    counts: Counter[tuple[str, str]], messages: Mapping[tuple[str, str], str]
) -> tuple[Cause, ...]:
    return tuple(
        Cause(code=code, reason=reason, count=count, message=messages.get((code, reason), ""))
        for (code, reason), count in counts.most_common()
    )


class SliceRecord(Frozen):
    """Requests that were due from `at_s` on. Two significant digits in its histogram."""

    at_s: float
    offered: int
    good: int
    refused: int
    failed: int
    e2e: LatencyRecord


class TimelineRecord(Frozen):
    interval_s: float
    slices: tuple[SliceRecord, ...]

    @classmethod
    def of(cls, timeline: Timeline) -> Self:
        slices = tuple(
            SliceRecord(
                at_s=number * timeline.interval_s,
                offered=piece.offered,
                good=piece.good,
                refused=piece.refused,
                failed=piece.failed,
                e2e=LatencyRecord.of(piece.e2e),
            )
            for number, piece in sorted(timeline.slices.items())
        )
        return cls(interval_s=timeline.interval_s, slices=slices)

    def timeline(self) -> Timeline:
        slices = {
            round(one.at_s / self.interval_s): Slice(
                one.offered, one.good, one.refused, one.failed, one.e2e.decoded(COARSE)
            )
            for one in self.slices
        }
        return Timeline(self.interval_s, slices)
