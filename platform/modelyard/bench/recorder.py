"""Puts what happened to each request where it belongs: total, stream, moment."""

from __future__ import annotations

from modelyard.bench.figures import Figures
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.timeline import Timeline
from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned
from modelyard.workload.slo import Slo


class Recorder:
    """Requests that were due before `warmup_s` are in the timeline and in no figure."""

    def __init__(self, workload: Workload, *, warmup_s: float, duration_s: float) -> None:
        self._slo = workload.slo
        self._warmup_s = warmup_s
        self.total = Figures()
        self.streams = {stream.name: Figures() for stream in workload.streams}
        self.timeline = Timeline.of(duration_s)

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
        good = outcome.verdict is Verdict.COMPLETED and _met(
            planned.stream.slo or self._slo, due, outcome
        )
        for figures in self._of(planned):
            figures.end(due, outcome, good=good)
        if outcome.verdict is Verdict.UNFINISHED:
            return
        piece = self.timeline.at(planned.at_s)
        piece.offered += 1
        piece.good += good
        piece.refused += outcome.verdict is Verdict.REJECTED
        piece.failed += outcome.verdict is Verdict.FAILED
        if outcome.verdict is Verdict.COMPLETED:
            piece.e2e.record(outcome.ended - due)

    def _of(self, planned: Planned) -> tuple[Figures, ...]:
        if planned.at_s < self._warmup_s:
            return ()
        return self.total, self.streams[planned.stream.name]


def _met(slo: Slo, due: float, outcome: Outcome) -> bool:
    ttft_s = None if outcome.first is None else outcome.first - due
    gaps = len(outcome.gaps_s)
    # Tokens that came in one piece have no gap of their own: so the mean is over all tokens.
    steps = max(gaps, outcome.output_tokens - 1)
    mean_s = sum(outcome.gaps_s) / steps if gaps else None
    return slo.met(outcome.ended - due, ttft_s, mean_s)
