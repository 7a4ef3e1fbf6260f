"""A control and some ingresses that share quotas, on one clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from modelyard.config.quotas import Quota
from modelyard.quota.book import REGRANT_S, Book, Seen
from modelyard.quota.figures import Figures, figures_of
from modelyard.quota.gate import QuotaGate
from modelyard.quota.reservation import Need, Outcome, Refusal


class SplitQuota:
    """Every message arrives at once, unless a test keeps it."""

    def __init__(self, quotas: Mapping[str, Quota], ingresses: int = 2) -> None:
        self.now = 0.0
        self.quotas = quotas
        self.book = Book(1, self.now, first=True)
        self.book.adopt(figures_of(quotas), self.now)
        self.gates = [self.new_gate(f"ingress-{at}") for at in range(ingresses)]

    def new_gate(self, name: str) -> QuotaGate:
        gate = QuotaGate(name, self.now)
        gate.adopt(self.quotas)
        return gate

    def adopt(self, quotas: Mapping[str, Quota]) -> None:
        self.quotas = quotas
        self.book.adopt(figures_of(quotas), self.now)
        for gate in self.gates:
            gate.adopt(quotas)

    def run(self, seconds: float) -> None:
        """Pass time with one exchange and one board post a second."""
        for _ in range(int(seconds)):
            self.now += 1.0
            for gate in self.gates:
                gate.posted(self.now, self.now)
            ages = {gate.holder.ingress: 0.0 for gate in self.gates}
            self.book.tick(self.now, Seen(ages, up_s=3600.0))
            self.exchange()

    def exchange(self) -> None:
        for gate in self.gates:
            reply = self.book.take(gate.report(self.now), self.now)
            if reply is not None:
                gate.take(reply, self.now)

    def reserve(self, at: int, need: Need) -> Outcome:
        """Ask ingress `at`, with the recalls that its refusals cause."""
        outcome = self.gates[at].reserve(need, self.now)
        for _ in range(4):
            if isinstance(outcome, Refusal):
                self.exchange()
                outcome = self.gates[at].reserve(need, self.now)
        return outcome

    def held(self) -> Figures:
        """The sum of what the ingresses hold of the generators' input bucket of "acme"."""
        parts = [
            part
            for gate in self.gates
            for key, part in gate.holder.parts.items()
            if key == ("acme", "generator", "input")
        ]
        return Figures(
            sum(one.bucket.rate for one in parts), sum(one.bucket.burst for one in parts)
        )


@pytest.fixture
def split() -> Callable[..., SplitQuota]:
    """Make one whose control has learned who holds what (nobody), so that its pool is full."""

    def make(quota: Quota, ingresses: int = 2) -> SplitQuota:
        made = SplitQuota({"acme": quota}, ingresses)
        made.run(REGRANT_S + 3)
        return made

    return make
