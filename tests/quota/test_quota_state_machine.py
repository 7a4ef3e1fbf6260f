"""Everything that can go wrong between ingresses and control, against one ideal bucket.

The ideal bucket is the whole quota in one place, full at the start, on the fastest clock. What the
split ones admit must be found in it: then nothing is over-admitted in any window. What a request
used beyond its reservation is not charged to it; that this debt is repaid is shown elsewhere.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from modelyard.config.quotas import Quota
from modelyard.quota.book import Book, Seen
from modelyard.quota.bucket import UNITS, TokenBucket
from modelyard.quota.figures import Key, figures_of
from modelyard.quota.gate import QuotaGate
from modelyard.quota.messages import HolderReport, SplitReply
from modelyard.quota.reservation import Exceeds, Need, Reservation

QUOTA: Final = Quota(
    input_tokens_per_min=6000,
    input_burst_tokens=600,
    output_tokens_per_min=3000,
    output_burst_tokens=300,
    requests_per_min=120,
    request_burst=20,
    max_active_sequences=7,
)
QUOTAS: Final = {"acme": QUOTA}
FIGURES: Final = figures_of(QUOTAS)
KEYS: Final = [key for key in FIGURES if key.model_class == "generator"]
DRIFT: Final = 0.01
MAX_INGRESSES: Final = 5


@dataclass
class Clock:
    """A process's own: up to 1 % fast or slow, and never the true one."""

    pace: float
    offset: float

    def at(self, true_s: float) -> float:
        return true_s * self.pace + self.offset


@dataclass
class Ingress:
    gate: QuotaGate
    clock: Clock
    posted_at: float | None = None  # true time of its last post on the board


class Split(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.ingresses: dict[str, Ingress] = {}
        self.born = 0
        self.reports: list[HolderReport] = []
        self.replies: list[SplitReply] = []
        self.open: list[tuple[str, Reservation]] = []
        self.book: Book | None = None
        self.epoch = 0
        self.many = False
        self.saved: dict[str, object] | None = None
        self.posts: dict[str, float] = {}
        self.ideal: dict[Key, TokenBucket] = {}

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.random = random.Random(seed)
        # As with many tenants: parts are given when they are asked for, and told in turns.
        self.many = seed % 2 == 1
        self.control_clock = self._clock()
        self.start_control(restore=False)
        for _ in range(3):
            self.new_ingress()
        for key in KEYS:
            if not key.is_permits:
                whole = FIGURES[key]
                rate = int(whole.rate * (1 + DRIFT))
                self.ideal[key] = TokenBucket(rate, whole.burst, whole.burst, 0.0)
        if self.random.random() < 0.9:
            self.heal(12)

    # What happens to time and processes.

    @rule(seconds=st.sampled_from((0.05, 0.3, 1.0, 1.0, 3.0, 6.0, 11.0)))
    def wait(self, seconds: float) -> None:
        self.time += seconds

    @precondition(lambda self: len(self.ingresses) < MAX_INGRESSES)
    @rule()
    def new_ingress(self) -> None:
        self.born += 1
        name, clock = f"i{self.born}", self._clock()
        gate = QuotaGate(name, clock.at(self.time), max_reported=4 if self.many else 400)
        gate.adopt(QUOTAS)
        self.ingresses[name] = Ingress(gate, clock)

    @precondition(lambda self: len(self.ingresses) > 2)
    @rule(which=st.integers(0, 99))
    def crash_ingress(self, which: int) -> None:
        name = self._name(which)
        del self.ingresses[name]
        self.open = [(owner, one) for owner, one in self.open if owner != name]

    @rule()
    def kill_control(self) -> None:
        self.book = None

    @rule(restore=st.booleans())
    def start_control(self, restore: bool) -> None:
        self.epoch += 1
        self.control_clock = self._clock()
        now = self.control_clock.at(self.time)
        first = self.epoch == 1
        self.book = Book(self.epoch, now, first, eager_buckets=0 if self.many else 400)
        if restore and self.saved is not None:
            complete = self.random.random() < 0.7
            self.book.restore(self.saved, complete, now)
        self.book.adopt(FIGURES, now)

    # Messages: each may be lost, doubled, late and out of order.

    @rule(which=st.integers(0, 99))
    def send_report(self, which: int) -> None:
        if self.ingresses:
            ingress = self.ingresses[self._name(which)]
            self.reports.append(ingress.gate.report(ingress.clock.at(self.time)))

    @rule(which=st.integers(0, 99), fate=st.sampled_from(("take", "take", "take", "copy", "lose")))
    def deliver_report(self, which: int, fate: str) -> None:
        if self.reports:
            report = self.reports[which % len(self.reports)]
            if fate != "copy":
                self.reports.remove(report)
            if fate != "lose":
                self._control_takes(report)

    @rule(which=st.integers(0, 99), fate=st.sampled_from(("take", "take", "take", "copy", "lose")))
    def deliver_reply(self, which: int, fate: str) -> None:
        if self.replies:
            reply = self.replies[which % len(self.replies)]
            if fate != "copy":
                self.replies.remove(reply)
            if fate != "lose":
                self._ingress_takes(reply)

    @rule(which=st.integers(0, 99), answered=st.booleans())
    def post(self, which: int, answered: bool) -> None:
        if self.ingresses:
            self._post(self._name(which), answered)

    @rule()
    def tick(self) -> None:
        if self.book is not None:
            ages = {name: self.time - at for name, at in self.posts.items()}
            self.book.tick(self.control_clock.at(self.time), Seen(ages, self.time + 100))

    @rule()
    def exchange(self) -> None:
        for name in list(self.ingresses):
            self._exchange(name)

    # Requests.

    @rule(
        which=st.integers(0, 99),
        read=st.integers(0, 600),
        written=st.integers(0, 300),
        answers=st.integers(1, 4),
    )
    def request(self, which: int, read: int, written: int, answers: int) -> None:
        if self.ingresses:
            self._request(self._name(which), read, written, answers)

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 99), part=st.sampled_from((0.0, 0.3, 1.0, 1.3)))
    def settle(self, which: int, part: float) -> None:
        owner, reservation = self.open.pop(which % len(self.open))
        self._settle(owner, reservation, part)
        assert not self._settle(owner, reservation, 0.0)

    @precondition(lambda self: self.book is not None and not self.book.is_learning)
    @rule(which=st.integers(0, 99))
    def affordable_request_is_admitted(self, which: int) -> None:
        """Control is up and messages arrive: what lies anywhere can be used anywhere."""
        self.heal(4)
        assert self.book is not None
        if self.book.is_learning:
            return
        name = self._name(which)
        # One that may be too much leaves its want behind, and must not be in the way.
        self._request(name, 600, 300, 1)
        levels = {key: self._level(key) for key in KEYS}
        read, written, count, answers = (
            int(levels[key] // (1 if key.is_permits else UNITS)) for key in KEYS
        )
        if count < 1 or answers < 1:
            return
        for _ in range(5):
            if self._request(name, max(0, read), max(0, written), answers):
                return
            self.exchange()
        raise AssertionError(f"{name} {levels} lay idle, and {name} could not use it")

    # What must hold.

    @invariant()
    def parts_never_sum_to_more(self) -> None:
        for ingress in self.ingresses.values():
            ingress.gate.holder.lapse(ingress.clock.at(self.time))
        for key in KEYS:
            parts = [
                one.gate.holder.parts[key]
                for one in self.ingresses.values()
                if key in one.gate.holder.parts
            ]
            whole = FIGURES[key]
            if key.is_permits:
                assert sum(part.permits.held for part in parts) <= whole.burst
            else:
                assert sum(part.bucket.rate for part in parts) <= whole.rate
                assert sum(part.bucket.burst for part in parts) <= whole.burst

    def teardown(self) -> None:
        """When all is quiet, everything comes back."""
        if not self.ideal:
            return
        if self.book is None:
            self.start_control(restore=True)
        for owner, reservation in self.open:
            self._settle(owner, reservation, 0.5)
        self.open = []
        self.heal(80)  # demand is forgotten, then everything fills
        for key in KEYS:
            unit = 1 if key.is_permits else UNITS
            assert self._level(key) == pytest.approx(FIGURES[key].burst, abs=unit // 1000)

    def heal(self, seconds: int) -> None:
        self.reports.clear()
        self.replies.clear()
        for _ in range(seconds):
            self.time += 1.0
            for name in self.ingresses:
                self._post(name, answered=True)
            self.tick()
            self.exchange()

    def _request(self, name: str, read: int, written: int, answers: int) -> bool:
        ingress = self.ingresses[name]
        now = ingress.clock.at(self.time)
        need = Need(f"r{self.random.random()}", "acme", "generator", read, written, answers)
        outcome = ingress.gate.reserve(need, now)
        assert not isinstance(outcome, Exceeds)
        if not isinstance(outcome, Reservation):
            return False
        self.open.append((name, ingress.gate.admitted(outcome, now)))
        for direction, amount in outcome.taken.items():
            if direction != "sequences":
                bucket = self.ideal[Key("acme", "generator", direction)]
                assert bucket.reserve(amount, self.time), f"{direction}: {amount} too much"
        in_use = sum(
            one.taken["sequences"]
            for owner, one in self.open
            if one.incarnation == self.ingresses[owner].gate.holder.incarnation
        )
        assert in_use <= (QUOTA.max_active_sequences or 0)
        return True

    def _settle(self, owner: str, reservation: Reservation, part: float) -> bool:
        ingress, taken = self.ingresses[owner], reservation.taken
        used = {name: int(amount * part) for name, amount in taken.items()}
        settled = ingress.gate.settle(
            reservation, used.get("input", 0), used.get("output", 0), ingress.clock.at(self.time)
        )
        if settled:
            for direction in ("input", "output"):
                if direction in taken:
                    bucket = self.ideal[Key("acme", "generator", direction)]
                    bucket.settle(
                        taken[direction], min(taken[direction], used[direction]), self.time
                    )
        return settled

    def _exchange(self, name: str) -> None:
        ingress = self.ingresses[name]
        for _ in range(2):
            reply = self._control_takes(ingress.gate.report(ingress.clock.at(self.time)))
            if reply is not None:
                self.replies.remove(reply)
                self._ingress_takes(reply)
            if reply is None or not reply.again:
                return

    def _control_takes(self, report: HolderReport) -> SplitReply | None:
        if self.book is None:
            return None
        reply = self.book.take(report, self.control_clock.at(self.time))
        self.saved = self.book.snapshot()
        if reply is not None:
            self.replies.append(reply)
        return reply

    def _ingress_takes(self, reply: SplitReply) -> None:
        if (ingress := self.ingresses.get(reply.ingress)) is not None:
            ingress.gate.take(reply, ingress.clock.at(self.time))

    def _post(self, name: str, answered: bool) -> None:
        ingress, self.posts[name] = self.ingresses[name], self.time
        if answered:
            now = ingress.clock.at(self.time)
            ingress.gate.posted(now, now)

    def _level(self, key: Key) -> int:
        """Of all living parts and the pool."""
        assert self.book is not None
        level = self.book.pool_level(key, self.control_clock.at(self.time))
        for one in self.ingresses.values():
            level += one.gate.holder.part(key, one.clock.at(self.time)).level(
                one.clock.at(self.time)
            )
        return level

    def _clock(self) -> Clock:
        return Clock(self.random.uniform(1 - DRIFT, 1 + DRIFT), self.random.uniform(0, 1e5))

    def _name(self, which: int) -> str:
        return sorted(self.ingresses)[which % len(self.ingresses)]


QUICK: Final = settings(
    max_examples=20,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_splits_never_admit_more_than_one_bucket_and_lose_nothing() -> None:
    run_state_machine_as_test(Split, settings=QUICK)


@pytest.mark.slow
def test_splits_hold_in_a_thousand_longer_runs() -> None:
    longer = settings(QUICK, max_examples=1000, stateful_step_count=80)
    run_state_machine_as_test(Split, settings=longer)
