"""Puts what happened to each request where it belongs: total, stream, moment."""

from __future__ import annotations

import math

from modelyard.bench.figures import Figures
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.timeline import Timeline
from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned


class Recorder:
    """The window is from `warmup_s` to `duration_s`, in seconds from the start.

    Requests that were due before it are in the timeline, and in no figure but those of what was
    done in the window.
    """

    def __init__(self, workload: Workload, *, warmup_s: float, duration_s: float) -> None:
        self._slos = {stream.name: stream.slo or workload.slo for stream in workload.streams}
        self._warmup_s = warmup_s
        self._duration_s = duration_s
        self._began = 0.0
        self.total = Figures()
        self.streams = {stream.name: Figures() for stream in workload.streams}
        self.timeline = Timeline.of(duration_s)

    def begin(self, at: float) -> None:
        """The start, on the outcomes' clock."""
        self._began = at

    def sent(self, planned: Planned, late_s: float) -> None:
        """A request left, so much later than it was due."""
        for figures in self._of(planned):
            figures.late.record(late_s)

    def attempt(self, planned: Planned) -> None:
        for figures in self._of(planned):
            figures.attempts += 1

    def answer(self, planned: Planned, outcome: Outcome) -> None:
        """To one attempt, whether or not another follows."""
        for figures in self._of(planned):
            figures.answer(outcome)

    def end(self, planned: Planned, due: float, outcome: Outcome) -> None:
        """due: the moment from which its latency counts, on the outcome's clock."""
        good, unmeasured = self._judged(planned, due, outcome)
        self._count_by_end(planned, outcome, good=good)
        for figures in self._of(planned):
            figures.end(due, outcome, good=good)
            figures.unmeasured += unmeasured
        if outcome.verdict is Verdict.UNFINISHED:
            return
        piece = self.timeline.at(planned.at_s)
        piece.offered += 1
        piece.good += good
        piece.refused += outcome.verdict is Verdict.REJECTED
        piece.failed += outcome.verdict is Verdict.FAILED
        if outcome.verdict is Verdict.COMPLETED:
            piece.e2e.record(outcome.ended - due)

    def _count_by_end(self, planned: Planned, outcome: Outcome, *, good: bool) -> None:
        """What depends on when it ended: also of requests that were due in the warm-up."""
        over = outcome.verdict is not Verdict.UNFINISHED
        ended_s = outcome.ended - self._began if over else math.inf
        half_s = (self._warmup_s + self._duration_s) / 2
        for figures in (self.total, self.streams[planned.stream.name]):
            if self._warmup_s <= ended_s < self._duration_s:
                figures.done_in_window(outcome, good=good)
            figures.under_way_halfway += planned.at_s < half_s <= ended_s
            figures.under_way_at_end += self._duration_s <= ended_s
            figures.due_in_second_half += planned.at_s >= half_s

    def _judged(self, planned: Planned, due: float, outcome: Outcome) -> tuple[bool, bool]:
        """Whether it was good, and whether a bound had nothing to be compared with."""
        if outcome.verdict is not Verdict.COMPLETED:
            return False, False
        slo, e2e_s = self._slos[planned.stream.name], outcome.ended - due
        if not planned.stream.streamed:
            return slo.of_unary.met(e2e_s, None, None), False
        ttft_s = None if outcome.first is None else outcome.first - due
        pace_s = _mean_itl_s(outcome)
        return slo.met(e2e_s, ttft_s, pace_s), slo.unmeasured(ttft_s, pace_s)

    def _of(self, planned: Planned) -> tuple[Figures, ...]:
        if planned.at_s < self._warmup_s:
            return ()
        return self.total, self.streams[planned.stream.name]


def _mean_itl_s(outcome: Outcome) -> float | None:
    """None where nothing shows the pace: many tokens in one piece, or none that was seen."""
    gaps = len(outcome.gaps_s)
    if not gaps:
        alone = outcome.first is not None and outcome.tokens_counted and outcome.output_tokens <= 1
        return 0.0 if alone else None
    # Tokens that came in one piece have no gap of their own: so the mean is over all tokens.
    return sum(outcome.gaps_s) / max(gaps, outcome.output_tokens - 1)
