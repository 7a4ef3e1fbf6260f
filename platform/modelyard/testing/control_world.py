"""A store in memory that can be made to fail, and controls over it, on a clock of the test's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from modelyard.contract.operations import Kind
from modelyard.control.journal import Journal
from modelyard.control.published import Published, newer
from modelyard.control.reading import Reading
from modelyard.control.report import ControlReply, ControlReport
from modelyard.control.service import ControlService
from modelyard.control.store import Raced, Row, Store, StoreFailed
from modelyard.rollout.outcome import Outcome, OutcomeBatch
from modelyard.testing.in_memory import post, table_record
from modelyard.testing.scripted_evidence import ScriptedEvidence


@dataclass
class MemoryStore:
    """crash_after: writes until the process dies: that one is done, and its answer lost."""

    rows: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    crash_after: int | None = None
    failing: bool = False
    writes: int = 0

    async def read(self, key: str) -> Row | None:
        self._answer()
        found = self.rows.get(key)
        return None if found is None else Row(found[0], str(found[1]))

    async def write(self, key: str, data: bytes, version: str | None) -> str:
        self._answer()
        held = self.rows.get(key)
        if (None if held is None else str(held[1])) != version:
            raise Raced(key)
        self.writes += 1
        self.rows[key] = data, self.writes  # never one that was used before
        if self.crash_after is not None:
            self.crash_after -= 1
            self._answer()
        return str(self.writes)

    async def close(self) -> None: ...

    def _answer(self) -> None:
        if self.failing or (self.crash_after is not None and self.crash_after <= 0):
            raise StoreFailed("the store is gone")


@dataclass
class ControlWorld:
    """One store, one board's word, one clock, and as many controls as a test starts."""

    store: MemoryStore = field(default_factory=MemoryStore)
    board: Published | None = None
    board_up: bool = True
    now: float = 1_000_000.0
    count: int = 0
    record: dict[str, Any] = field(default_factory=lambda: table_with_a_rollout())
    canaries: int = 1  # ready replicas of gen@1.1.0
    stables: int = 1  # and of gen@1.0.0
    batches: int = 0

    async def publish(self, word: Published) -> Published:
        if not self.board_up:
            raise ConnectionError("no board")
        self.board = newer(self.board, word)
        assert self.board is not None
        return self.board

    @property
    def word(self) -> Published:
        """What the board holds."""
        assert self.board is not None
        return self.board

    def reading(self) -> Reading | None:
        posts = tuple(
            post(version, Kind.GENERATOR, replica=f"{version}-{number}")
            for version, count in (("gen@1.1.0", self.canaries), ("gen@1.0.0", self.stables))
            for number in range(count)
        )
        return Reading(posts, (), (), self.board, 0.0, 100.0) if self.board_up else None

    async def report(
        self, control: ControlService, *outcomes: Outcome, ingress: str = "i-1"
    ) -> ControlReply:
        """An ingress's report, with these in a batch of their own."""
        batches: tuple[OutcomeBatch, ...] = ()
        if outcomes:
            self.batches += 1
            batches = (OutcomeBatch(self.batches, outcomes),)
        return await control.exchange(ControlReport(ingress, outcomes=batches))

    async def started(self, store: Store | None = None) -> ControlService:
        self.count += 1
        journal = Journal(store or self.store, f"mark-{self.count}")
        control = ControlService(
            journal, self.publish, lambda: self.now, lambda: self.now, ScriptedEvidence
        )
        control.adopt(self.record)
        await control.start(self.board if self.board_up else None)
        await control.tick(self.reading())
        return control


def table_with_a_rollout(**plan: Any) -> dict[str, Any]:
    record = table_record()
    record["routes"]["chat"] |= {"canary": "gen@1.1.0", "rollout": {"id": "gen-1.1.0"} | plan}
    return record
