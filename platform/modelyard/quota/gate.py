"""What the pipeline asks: may this request run, and what did it use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from modelyard.config.quotas import Quota
from modelyard.control.published import Override
from modelyard.quota.bucket import UNITS
from modelyard.quota.figures import Direction, Figures, Key, ModelClass, figures_of
from modelyard.quota.headers import Gauge, rate_limit_headers
from modelyard.quota.holder import MAX_REPORTED, WANT_S, Holder
from modelyard.quota.messages import HolderReport, SplitReply, Tally
from modelyard.quota.reservation import Exceeds, Need, Outcome, Refusal, Reservation

PERMIT_RETRY_S: Final = 1.0  # nobody knows when a running answer ends
NO_REFILL_RETRY_S: Final = 60.0
RECALL_EACH_S: Final = 0.25
_ONE_OF_EACH: Final[tuple[Direction, ...]] = ("input", "output", "requests", "sequences")


class QuotaGate:
    """One per ingress process; `ingress` is unique to it. `now` is its monotonic clock.

    `reserve` may be asked again after a recall: nothing is counted until `admitted`.
    """

    def __init__(self, ingress: str, now: float, max_reported: int = MAX_REPORTED) -> None:
        self.holder = Holder(ingress, now, max_reported)
        self.tallies: dict[tuple[str, str], Tally] = {}
        self._figures: dict[Key, Figures] = {}
        self.metered: frozenset[str] = frozenset()  # tenants with any limit
        self._shadowed: frozenset[str] = frozenset()
        self._in_vain: dict[Key, float] = {}

    def adopt(self, quotas: Mapping[str, Quota], overrides: Iterable[Override] = ()) -> None:
        """Take a new table's quotas or other overrides. The splits follow from control."""
        self._figures = figures_of(quotas, overrides)
        self.metered = frozenset(key.tenant for key in self._figures)
        self._shadowed = frozenset(name for name, one in quotas.items() if one.mode == "shadow")

    def reserve(self, need: Need, now: float) -> Outcome:
        """Take what the request needs from every bucket of its tenant, or nothing from any."""
        self.holder.lapse(now)
        taken: dict[Direction, int] = {}
        for direction, (asked, is_said) in need.amounts().items():
            key = Key(need.tenant, need.model_class, direction)
            if asked <= 0 or (whole := self._figures.get(key)) is None:
                continue
            burst = whole.burst if key.is_permits else whole.burst // UNITS
            if asked > burst and is_said:
                return Exceeds(need, direction, asked, burst)
            taken[direction] = min(asked, burst)
        refusals = [
            refusal
            for direction, amount in taken.items()
            if (refusal := self._lacks(need, direction, amount, now)) is not None
        ]
        if refusals:
            return max(refusals, key=lambda one: one.retry_after_s)
        for direction, amount in taken.items():
            self._take(Key(need.tenant, need.model_class, direction), amount, now)
        return Reservation(need, self.holder.incarnation, taken)

    def should_recall(self, outcome: Outcome, now: float) -> bool:
        """Whether a call to control may help; not within RECALL_EACH_S of one that did not, or a
        tenant that has used everything up would make a call of each of its refusals."""
        if not isinstance(outcome, Refusal):
            return False
        key = Key(outcome.need.tenant, outcome.need.model_class, outcome.direction)
        return now - self._in_vain.get(key, float("-inf")) >= RECALL_EACH_S

    def recalled_in_vain(self, refusal: Refusal, now: float) -> None:
        need = refusal.need
        self._in_vain[Key(need.tenant, need.model_class, refusal.direction)] = now

    def want(self, needs: Iterable[Need], now: float) -> None:
        """Ask for what all of these lack together, in the next report; no more than a bucket
        holds."""
        sums: dict[Key, int] = {}
        for need in needs:
            for direction, (asked, _) in need.amounts().items():
                key = Key(need.tenant, need.model_class, direction)
                if asked > 0 and key in self._figures:
                    sums[key] = sums.get(key, 0) + asked
        for key, total in sums.items():
            wanted = min(total * (1 if key.is_permits else UNITS), self._figures[key].burst)
            part = self.holder.part(key, now)
            if wanted > part.level(now):
                part.ask(wanted, now + WANT_S)

    def admitted(self, outcome: Outcome, now: float) -> Reservation:
        """The reservation to settle. Counts the outcome. Raises RateLimited or InvalidRequest.

        In shadow mode a refusal is counted and the request runs, without having taken anything.
        """
        need = outcome.need
        for direction, (asked, _) in need.amounts().items():
            key = Key(need.tenant, need.model_class, direction)
            if key in self._figures:
                unit = 1 if key.is_permits else UNITS
                self.holder.part(key, now).demand += asked * unit
        if isinstance(outcome, Reservation):
            self._count(need, Tally(requests=1))
            return outcome
        if need.tenant in self._shadowed:
            self._count(need, Tally(requests=1, would_refuse=1))
            return Reservation(need, self.holder.incarnation)
        self._count(need, Tally(refused=1))
        raise outcome.error()

    def settle(
        self,
        reservation: Reservation,
        input_tokens: int | None,
        output_tokens: int,
        now: float,
        *,
        cached_tokens: int = 0,
        served: bool = True,
    ) -> bool:
        """Give back what was not used, or charge what was used beyond it. False: it was settled.

        input_tokens: None when the engine began and never said: the reservation is kept. Tokens
        found in a prefix cache cost no prefill and are not charged. served: False for a request
        that no engine began, which costs nothing.
        """
        if reservation.settled:
            return False
        reservation.settled = True
        need = reservation.need
        read = need.input_tokens if input_tokens is None else max(0, input_tokens - cached_tokens)
        used: dict[Direction, int] = {"requests": 1, "input": read, "output": output_tokens}
        if input_tokens is None:
            used["input"] = reservation.taken.get("input", read)
        if not served:
            used = {}
        self._count(need, Tally(0, 0, 0, used.get("input", 0), output_tokens if served else 0))
        for direction, amount in reservation.taken.items():
            key = Key(need.tenant, need.model_class, direction)
            self._settle(key, amount, used.get(direction, 0), reservation.incarnation, now)
        return True

    def report(self, now: float) -> HolderReport:
        """To send to control once a second, and again after `again`."""
        return self.holder.report(now)

    def brief_report(self, now: float, wanted: Iterable[Key] = ()) -> HolderReport:
        """For a recall: what this ingress wants, or control of it for another (`wanted`)."""
        return self.holder.report(now, wanted, brief=True)

    def take(self, reply: SplitReply, now: float) -> bool:
        """Take control's answer. False: it was late or doubled and changed nothing."""
        return self.holder.take(reply, now)

    def posted(self, sent: float, now: float) -> None:
        """The board has answered a post that was sent at `sent`: we are known to live."""
        self.holder.posted(sent, now)

    def headers(self, tenant: str, model_class: ModelClass, now: float) -> list[tuple[str, str]]:
        """The x-ratelimit headers of an answer; none for a tenant without limits."""
        gauges: dict[Direction, Gauge] = {}
        for direction in _ONE_OF_EACH:
            key = Key(tenant, model_class, direction)
            whole = self._figures.get(key)
            if whole is None or key.is_permits:
                continue
            part = self.holder.part(key, now)
            level = part.level(now)
            own = Figures(part.bucket.rate, part.bucket.burst)
            gauges[direction] = Gauge.of(whole, own if own.rate and own.burst else whole, level)
        return rate_limit_headers(gauges)

    def _lacks(self, need: Need, direction: Direction, amount: int, now: float) -> Refusal | None:
        """The refusal when our part holds too little; it is then wanted from control."""
        key = Key(need.tenant, need.model_class, direction)
        part = self.holder.part(key, now)
        unit = 1 if key.is_permits else UNITS
        missing = amount * unit - part.level(now)
        if missing <= 0:
            return None
        part.ask(amount * unit, now + WANT_S)
        # Control can gather the whole bucket here; without it only our own part refills.
        rate = self._figures[key].rate if self.holder.hears_control(now) else part.bucket.rate
        if key.is_permits:
            wait_s = PERMIT_RETRY_S
        else:
            wait_s = missing / rate / 1e6 if rate else NO_REFILL_RETRY_S
        return Refusal(need, direction, missing / unit, wait_s)

    def _take(self, key: Key, amount: int, now: float) -> None:
        part = self.holder.part(key, now)
        part.want = 0
        if key.is_permits:
            part.permits.reserve(amount)
        else:
            part.bucket.reserve(amount, now)

    def _settle(self, key: Key, taken: int, used: int, incarnation: int, now: float) -> None:
        part = self.holder.part(key, now)
        if key.is_permits:
            part.permits.release(taken)
        elif incarnation == self.holder.incarnation or used > taken:
            part.bucket.settle(taken, used, now)

    def _count(self, need: Need, tally: Tally) -> None:
        key = (need.tenant, need.model_class)
        self.tallies[key] = self.tallies.get(key, Tally()).plus(tally)
