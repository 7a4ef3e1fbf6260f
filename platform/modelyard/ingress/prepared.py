"""A request as its carrier delivers it, and as it is once nothing but a replica is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from modelyard.admission.suspects import digest_of
from modelyard.config.routes import Deadlines
from modelyard.contract.envelope import Envelope, Item
from modelyard.contract.operations import Operation
from modelyard.ingress.place import Place
from modelyard.ingress.work import Work
from modelyard.quota.reservation import Need, Reservation
from modelyard.routing.pool import Cell
from modelyard.routing.resolve import Target
from modelyard.routing.trail import Trail
from modelyard.telemetry.request_log import RequestRecord
from modelyard.telemetry.request_metrics import Gaps
from modelyard.tenancy.callers import Caller

BYTES_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as its carrier (HTTP or a handle) delivers it."""

    operation: Operation
    route: str
    authorization: str | None
    headers: Mapping[str, str]
    request_id: str
    started: float


class Taps(Protocol):
    """Who listens to a request (answer_tap.py)."""

    def item(self, item: Item) -> None: ...

    def ended(self, prepared: Prepared) -> None: ...


@dataclass(slots=True)
class Prepared:
    """A request that may be dispatched, and the record of what becomes of it."""

    caller: Caller
    target: Target
    work: Work
    envelope: Envelope
    record: RequestRecord
    started: float
    deadlines: Deadlines
    need: Need | None = field(default=None)  # None: its tenant has no quota
    reservation: Reservation | None = field(default=None)
    rate_limits: dict[str, str] = field(default_factory=dict)  # headers, once it is reserved
    tried: list[Cell] = field(default_factory=list)
    trail: Trail | None = field(default=None)  # for a caller who may ask why
    whole: Work | None = field(default=None)  # what was asked, where less is now asked for
    place: Place | None = field(default=None)  # the slot that it has
    status_sent: bool = field(default=False)  # with the headers of this target: no other may answer
    settled: bool = field(default=False)
    none_ready: bool = field(default=False)  # when it was last sent: it then waits for a replica
    gaps: Gaps | None = field(default=None)  # between the items of a stream, once it has begun
    pin: str = field(default="")  # for the next turn of its conversation
    taps: Taps | None = field(default=None)  # None: nobody listens

    def digest(self) -> str:
        """Of what its caller asked, however much of that a full queue left."""
        asked = self.envelope
        if self.whole is not None:
            asked = replace(asked, body=self.whole.encoded)
        return digest_of(asked, self.record.tenant)

    @property
    def prompt_tokens(self) -> int:
        """As its quota estimated them, or roughly, which costs nothing."""
        if self.need is not None:
            return self.need.input_tokens
        return len(self.work.encoded) // BYTES_PER_TOKEN

    def left_s(self, now: float) -> float:
        """Seconds to the total deadline."""
        return self.started + self.deadlines.total_s - now

    def first_token_left_s(self, now: float) -> float:
        return self.started + self.deadlines.first_token_s - now

    def item_limit(self, now: float) -> tuple[str, float]:
        """The deadline that the next item must meet, by name, and the seconds to it."""
        if self.record.ttft_ms is None:
            which, limit_s = "first_token", self.first_token_left_s(now)
        else:
            which, limit_s = "idle", self.deadlines.idle_s
        left_s = self.left_s(now)
        return (which, limit_s) if limit_s <= left_s else ("total", left_s)
