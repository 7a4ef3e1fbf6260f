"""Control itself, without Ray: its state, its store, and what it tells the board."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from modelyard.control import usage
from modelyard.control.evidence import EvidenceKind
from modelyard.control.journal import Fenced, Journal
from modelyard.control.keeper import STATE, StateKeeper, succeeded
from modelyard.control.last_table import LastTable
from modelyard.control.mover import RolloutMover
from modelyard.control.published import Published
from modelyard.control.questions import Questions
from modelyard.control.quota_desk import QuotaDesk, Surrender
from modelyard.control.reading import Reading
from modelyard.control.report import ControlReply, ControlReport
from modelyard.control.rollout_desk import RolloutDesk
from modelyard.control.rollout_verbs import ROLLBACK, Outcome, outcome_of, overtaken
from modelyard.control.state import State, decode, published, take_over
from modelyard.control.store import StoreFailed
from modelyard.control.swap_desk import SwapDesk
from modelyard.control.usage import UsageBook
from modelyard.control.verbs import Command, execute
from modelyard.quota.book import Book
from modelyard.quota.messages import HolderReport, SplitReply
from modelyard.rollout.evidence import Evidence
from modelyard.rollout.look import Look
from modelyard.rollout.record import RolloutRecord

log = logging.getLogger("modelyard.control")

TABLE: Final = "table"
USAGE: Final = "usage"
QUOTA: Final = "quota"
EVIDENCE: Final = "evidence"
SAVE_USAGE_S: Final = 10.0
SAVE_EVIDENCE_S: Final = 5.0

Publish = Callable[[Published], Awaitable[Published]]


class ControlService:
    """One per cluster. `start` before anything else; `tick` each second; `admin` for operators.

    Every change is in the store before the board or a caller hears of it, but for a rollback: that
    waits for no disk (StateKeeper).
    """

    def __init__(
        self,
        journal: Journal,
        publish: Publish,
        wall: Callable[[], float] = time.time,
        now: Callable[[], float] = time.monotonic,
        evidence: EvidenceKind = Evidence,
    ) -> None:
        """wall: unix seconds, for what outlives this process. now: for what does not."""
        self._journal = journal
        self._publish_to = publish
        self._wall = wall
        self._now = now
        self._was_given = False
        self._table_unsaved = False
        self._usage_saved_at = wall()
        self._evidence_saved_at = wall()
        self._usage = UsageBook()
        self._keeper = StateKeeper(journal, self._note_store)
        self._quotas: QuotaDesk
        self._quotas_of: tuple[Any, ...] = ()
        self.tables = LastTable()
        self.rollouts = RolloutDesk(evidence, now)
        self.swaps = SwapDesk(now)
        self._mover = RolloutMover(self._keeper, self.rollouts, self._try_to_publish, wall)
        self._questions = Questions(self._keeper, self.tables, self.rollouts, wall)
        self.store_error = ""

    @property
    def fenced(self) -> bool:
        return self._journal.fenced

    async def start(self, mirror: Published | None) -> None:
        """Take the next epoch. mirror: the board's word, None when it has none or is silent.

        Raises StoreFailed, Fenced when another starts at the same time, or ConfigError for a store
        that this release cannot read.
        """
        async with self._keeper.changing:
            await self._take_over(mirror)
            self.swaps.carry_over(mirror)
            if (kept := await self._journal.claim(TABLE)) is not None:
                self.tables.restore(kept)
            if (kept := await self._journal.claim(USAGE)) is not None:
                self._usage = self._usage_from(kept)
            if (kept := await self._journal.claim(EVIDENCE)) is not None:
                self.rollouts.shelf.restore(kept)
        self._take_table()
        state = self._keeper.state
        self.rollouts.settle(state, self._wall())
        log.info("control epoch %d, revision %d", state.epoch, state.revision)

    def adopt(self, record: Any) -> None:
        """Take a table from Serve. A bad one is refused in the log, and the last good one stays."""
        self._was_given = True
        if self.tables.offer(record):
            self._table_unsaved = True
        if self.tables.error:
            log.error("this table is refused, the last good one stays: %s", self.tables.error)
        self._take_table()

    async def admin(self, command: Command) -> dict[str, Any]:
        """Carry out a verb, or answer a question. Raises RequestError."""
        answer = self._questions.answer(command.verb, command.args, self._usage)
        if answer is not None:
            if command.verb == "status":
                answer |= {"store_error": self.store_error, "fenced": self.fenced}
                answer["unstored_rollbacks"] = sorted(self._keeper.unstored)
                answer["swap_areas"] = self.swaps.shown
            return answer
        if command.verb == ROLLBACK:
            return await self._roll_back(command)
        async with self._keeper.changing:
            changed, outcome = self._execute(command)
            if changed is not self._keeper.state:
                await self._keeper.save(changed)
                self.rollouts.settle(self._keeper.state, self._wall())
                log.info("%s by %s: %s", command.verb, command.author, outcome)
        is_known = await self._try_to_publish()
        return overtaken(outcome, self._keeper.state) | {"published": is_known}

    async def exchange(self, report: ControlReport) -> ControlReply:
        """An ingress's report of the second."""
        now = self._wall()
        self._usage.report(report.ingress, report.usage, now)
        self.swaps.answered(report)
        quota = None
        if report.quota is not None and not self.fenced:
            quota = await self._quotas.exchange(report.quota)
        if self.fenced:
            return ControlReply(self._keeper.state.epoch, quota)
        taken = 0
        if self.rollouts.settled:  # before, outcomes would go to nobody
            if self.rollouts.shelf.take(report, now):
                self._mover.wake()
            taken = self.rollouts.shelf.saved(report.ingress)
        return ControlReply(self._keeper.state.epoch, quota, self._word(), taken)

    async def recall(self, report: HolderReport, surrender: Surrender) -> SplitReply | None:
        """An ingress cannot afford a request: gather for it. The caller bounds the time."""
        return None if self.fenced else await self._quotas.recall(report, surrender)

    async def tick(self, reading: Reading | None) -> None:
        """Tell the board again, so that one that started anew is filled; move the rollouts; save
        what changed.

        reading: the board's, None when it did not answer.
        """
        self.rollouts.read(reading)
        self.swaps.read(self.rollouts.table, reading)
        await self._try_to_publish()  # first: a store that hangs must not make control seem away
        if self.fenced:
            return
        before = self._keeper.state
        await self._mover.move()
        if self._keeper.state is not before:
            await self._try_to_publish()
        self.rollouts.remember(self._keeper.state)
        self._set_quotas()
        self._quotas.tick(reading)
        try:
            async with self._keeper.changing:
                await self._save_the_rest()
        except Fenced as error:
            log.error("%s: this control stops", error)
        except StoreFailed as error:
            self._note_store(str(error))

    async def close(self) -> None:
        await self._mover.close()
        await self._keeper.close()
        await self._journal.close()

    def _take_table(self) -> None:
        """Rollouts live by a table that Serve gave to this process, or by the last good one where
        that is bad: by the kept one alone, which may be older, one could seem to have left it."""
        self.rollouts.kept = self.tables.table
        if self._was_given:
            self.rollouts.table = self.tables.table

    def _execute(self, command: Command) -> tuple[State, Outcome]:
        def look_of(state: State, rollout: str) -> tuple[RolloutRecord, Look]:
            return self.rollouts.look(state, rollout, self._wall())

        state = self._keeper.state
        return execute(state, command, self.tables.table, self._wall(), look_of)

    async def _roll_back(self, command: Command) -> dict[str, Any]:
        """A human's. Its second coming finds it rolled back: it needs no memory of requests."""
        changed, outcome = self._execute(command)
        rollout = str(outcome["id"])
        await self._keeper.roll_back(changed.rollouts[rollout])
        if self.fenced:
            raise succeeded()
        self.rollouts.settle(self._keeper.state, self._wall())
        is_known = await self._try_to_publish()
        if self.fenced:
            raise succeeded()
        state = self._keeper.state
        outcome = outcome_of(state, state.rollouts[rollout])
        log.info("%s by %s: %s", command.verb, command.author, outcome)
        stored = rollout not in self._keeper.unstored
        return dict(outcome) | {"published": is_known, "stored": stored}

    def _word(self) -> Published:
        keeper = self._keeper
        word = self.rollouts.word(keeper.state, self._wall(), keeper.stored_revision)
        overrides = word.overrides + self.swaps.overrides()
        return replace(word, overrides=overrides, loads=self.swaps.loads())

    async def _save_the_rest(self) -> None:
        now = self._wall()
        if self._table_unsaved:
            await self._journal.write(TABLE, self.tables.encode())
            self._table_unsaved = False
        if now - self._usage_saved_at >= SAVE_USAGE_S:
            self._usage.tidy(now, _day(now, usage.KEPT_DAYS))
            await self._journal.write(USAGE, self._usage.encode())
            self._usage_saved_at = now
            self.store_error = ""
        if now - self._evidence_saved_at >= SAVE_EVIDENCE_S and self.rollouts.shelf.by_rollout:
            await self._journal.write(EVIDENCE, self.rollouts.shelf.encode())
            self.rollouts.shelf.note_saved()
            self._evidence_saved_at = now

    async def _try_to_publish(self) -> bool:
        """Whether the board took it. It may be away: the next second tries again, and ingresses
        are told with the reply to their next report."""
        if self.fenced:
            return False
        try:
            held = await self._publish_to(self._word())
        except Exception as error:  # noqa: BLE001  the edge to the board, whatever carries it
            log.warning("the board did not take the state: %r", error)
            return False
        if held.order > self._keeper.order:
            await self._learn_of(held)
        return not self.fenced

    async def _learn_of(self, held: Published) -> None:
        """The board holds a later word: a successor's, or this store is an older copy."""
        async with self._keeper.changing:
            try:
                if not await self._journal.owns(STATE):
                    self._journal.fenced = True
                    log.error("the board holds epoch %d: this control stops", held.epoch)
                    return
                await self._take_over(held)
            except StoreFailed as error:
                self._note_store(str(error))
                return
        if self._keeper.state.held:
            log.error("the board's state is later than the store: rollouts are held")

    async def _take_over(self, mirror: Published | None) -> None:
        def next_of(kept: bytes | None) -> tuple[int, bytes]:
            state = take_over(decode(kept) if kept else State(), mirror, self._wall())
            return state.epoch, state.encode()

        before = self._keeper.state.epoch
        state = decode(await self._journal.take(STATE, next_of))
        kept = await self._journal.claim(QUOTA)
        first = before == 0 and mirror is None and state.epoch == 1
        self._quotas = self._quota_desk(Book(state.epoch, self._now(), first=first))
        if kept is not None:
            self._restore_quotas(state, kept)
        self._keeper.adopt(state)
        self._set_quotas()

    def _quota_desk(self, book: Book) -> QuotaDesk:
        return QuotaDesk(book, lambda data: self._journal.write(QUOTA, data), self._now)

    def _restore_quotas(self, state: State, kept: bytes) -> None:
        """What another release kept may have another shape: the book then learns from the holders,
        as after a lost store. Control must start."""
        try:
            self._quotas.restore(kept, lost=bool(state.held))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            log.error("the kept splits cannot be read, ingresses are asked instead: %r", error)
            self._quotas = self._quota_desk(Book(state.epoch, self._now()))

    def _usage_from(self, kept: bytes) -> UsageBook:
        """Usage is a view: what cannot be read must not keep control from starting."""
        try:
            return UsageBook.decode(kept, self._wall())
        except (LookupError, TypeError, ValueError) as error:
            log.error("the kept usage cannot be read, it begins anew: %r", error)
            return UsageBook()

    def _set_quotas(self) -> None:
        if (table := self.tables.table) is None:
            return
        overrides = published(self._keeper.state, self._wall()).overrides
        limits = tuple(
            (one.target, one.value)
            for one in overrides
            if one.kind == "limit" and one.of_route is None
        )
        if self._quotas_of == (table, limits, self._quotas):
            return  # each second, of perhaps ten thousand tenants
        self._quotas.adopt(table.quotas, overrides)
        self._quotas_of = (table, limits, self._quotas)

    def _note_store(self, error: str) -> None:
        if error and not self.store_error:
            log.error("%s: serving goes on, changes are refused", error)
        self.store_error = error


def _day(now: float, days_ago: int) -> str:
    return (datetime.fromtimestamp(now, UTC) - timedelta(days=days_ago)).date().isoformat()
