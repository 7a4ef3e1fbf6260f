"""What is counted of a group of requests. Figures of two generators, or of two runs, add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from modelyard.bench.histogram import LatencyHistogram
from modelyard.bench.outcome import Outcome, Verdict

Cause = tuple[str, str]  # code, reason


@dataclass(slots=True)
class Figures:
    """Latencies are of completed requests only: a rejection is no latency.

    offered: requests that were due in the window and came to an end. attempts: with the retries.
    rejections and errors: every attempt that ended so, by cause. messages: what the server said,
    one sample of each cause. refused and failed: requests whose last attempt ended so. late: how
    long after it was due a request was sent. unmeasured: completed streams with a bound on a time
    that was not seen; they are not good.

    What a server did is counted by when it was done, whenever it was due: completed_in_window,
    good_in_window, output_tokens_in_window (of answers that ended in it). What was due in the
    window and ended after it says nothing of its rate. under_way_halfway, under_way_at_end: due by
    then and not ended, of the window; due_in_second_half: what could have added to them between.
    """

    offered: int = 0
    completed: int = 0
    good: int = 0
    refused: int = 0
    failed: int = 0
    unfinished: int = 0
    unmeasured: int = 0
    completed_in_window: int = 0
    good_in_window: int = 0
    output_tokens_in_window: int = 0
    under_way_halfway: int = 0
    under_way_at_end: int = 0
    due_in_second_half: int = 0
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    rejections: Counter[Cause] = field(default_factory=Counter)
    errors: Counter[Cause] = field(default_factory=Counter)
    messages: dict[Cause, str] = field(default_factory=dict)
    e2e: LatencyHistogram = field(default_factory=LatencyHistogram)
    ttft: LatencyHistogram = field(default_factory=LatencyHistogram)
    itl: LatencyHistogram = field(default_factory=LatencyHistogram)
    rejected_after: LatencyHistogram = field(default_factory=LatencyHistogram)
    late: LatencyHistogram = field(default_factory=LatencyHistogram)
    connection_wait: LatencyHistogram = field(default_factory=LatencyHistogram)

    def answer(self, outcome: Outcome) -> None:
        """To one attempt, whether or not another follows."""
        if outcome.verdict is Verdict.REJECTED:
            self.rejections[outcome.code, outcome.reason] += 1
            self.rejected_after.record(outcome.ended - outcome.started)
        elif outcome.verdict is Verdict.FAILED:
            self.errors[outcome.code, outcome.reason] += 1
        if outcome.message:
            self.messages.setdefault((outcome.code, outcome.reason), outcome.message)

    def end(self, due: float, outcome: Outcome, *, good: bool) -> None:
        """The last attempt of a request that was due at `due`, on the outcome's clock."""
        if outcome.verdict is Verdict.UNFINISHED:
            self.unfinished += 1
            return
        self.offered += 1
        self.refused += outcome.verdict is Verdict.REJECTED
        self.failed += outcome.verdict is Verdict.FAILED
        if outcome.verdict is not Verdict.COMPLETED:
            return
        self.completed += 1
        self.good += good
        self.input_tokens += outcome.input_tokens
        self.output_tokens += outcome.output_tokens
        self.e2e.record(outcome.ended - due)
        self.connection_wait.record(outcome.connection_wait_s)
        if outcome.first is not None:
            self.ttft.record(outcome.first - due)
        for gap_s in outcome.gaps_s:
            self.itl.record(gap_s)

    def done_in_window(self, outcome: Outcome, *, good: bool) -> None:
        if outcome.verdict is Verdict.COMPLETED:
            self.completed_in_window += 1
            self.good_in_window += good
            self.output_tokens_in_window += outcome.output_tokens

    def add(self, other: Figures) -> None:
        for name in self.__slots__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, LatencyHistogram):
                mine.add(theirs)
            elif name == "messages":
                self.messages = theirs | mine
            else:
                setattr(self, name, mine + theirs)

    @property
    def good_percent(self) -> float | None:
        return 100 * self.good / self.offered if self.offered else None

    @property
    def attempts_per_request(self) -> float | None:
        requests = self.offered + self.unfinished
        return self.attempts / requests if requests else None
