"""Control itself, without Ray: its state, its store, and what it tells the board."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from modelyard.contract.errors import Overloaded
from modelyard.contract.validate import validated
from modelyard.control import show, usage
from modelyard.control.arguments import OfTenant
from modelyard.control.journal import Fenced, Journal
from modelyard.control.last_table import LastTable
from modelyard.control.published import Published
from modelyard.control.quota_desk import QuotaDesk, Surrender
from modelyard.control.reading import Reading
from modelyard.control.report import ControlReply, ControlReport
from modelyard.control.state import State, decode, published, take_over
from modelyard.control.store import StoreFailed
from modelyard.control.usage import UsageBook
from modelyard.control.verbs import Command, execute
from modelyard.quota.book import Book
from modelyard.quota.messages import HolderReport, SplitReply

log = logging.getLogger("modelyard.control")

STATE: Final = "state"
TABLE: Final = "table"
USAGE: Final = "usage"
QUOTA: Final = "quota"
SAVE_USAGE_S: Final = 10.0

Publish = Callable[[Published], Awaitable[Published]]


class ControlService:
    """One per cluster. `start` before anything else; `tick` each second; `admin` for operators.

    Every change is in the store before the board or a caller hears of it.
    """

    def __init__(
        self,
        journal: Journal,
        publish: Publish,
        wall: Callable[[], float] = time.time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """wall: unix seconds, for what outlives this process. now: for what does not."""
        self._journal = journal
        self._publish_to = publish
        self._wall = wall
        self._now = now
        self._changing = asyncio.Lock()
        self._table_unsaved = False
        self._usage_saved_at = wall()
        self._usage = UsageBook()
        self._reading: Reading | None = None
        self._state = State()
        self._quotas: QuotaDesk
        self._quotas_of: tuple[Any, ...] = ()
        self.tables = LastTable()
        self.store_error = ""

    @property
    def fenced(self) -> bool:
        return self._journal.fenced

    async def start(self, mirror: Published | None) -> None:
        """Take the next epoch. mirror: the board's word, None when it has none or is silent.

        Raises StoreFailed, Fenced when another starts at the same time, or ConfigError for a store
        that this release cannot read.
        """
        async with self._changing:
            await self._take_over(mirror)
            if (kept := await self._journal.claim(TABLE)) is not None:
                self.tables.restore(kept)
            if (kept := await self._journal.claim(USAGE)) is not None:
                self._usage = self._usage_from(kept)
        log.info("control epoch %d, revision %d", self._state.epoch, self._state.revision)

    def adopt(self, record: Any) -> None:
        """Take a table from Serve. A bad one is refused in the log, and the last good one stays."""
        if self.tables.offer(record):
            self._table_unsaved = True
        if self.tables.error:
            log.error("this table is refused, the last good one stays: %s", self.tables.error)

    async def admin(self, command: Command) -> dict[str, Any]:
        """Carry out a verb, or answer a question. Raises RequestError."""
        if (answer := self._answer(command.verb, command.args)) is not None:
            return answer
        async with self._changing:
            now = self._wall()
            changed, outcome = execute(self._state, command, self.tables.table, now)
            if changed is not self._state:
                await self._save_state(changed)
                log.info("%s by %s: %s", command.verb, command.author, outcome)
        is_known = await self._try_to_publish()
        return dict(outcome) | {"published": is_known}

    async def exchange(self, report: ControlReport) -> ControlReply:
        """An ingress's report of the second."""
        self._usage.report(report.ingress, report.usage, self._wall())
        quota = None
        if report.quota is not None and not self.fenced:
            quota = await self._quotas.exchange(report.quota)
        word = None if self.fenced else published(self._state, self._wall())
        return ControlReply(self._state.epoch, quota, word)

    async def recall(self, report: HolderReport, surrender: Surrender) -> SplitReply | None:
        """An ingress cannot afford a request: gather for it. The caller bounds the time."""
        return None if self.fenced else await self._quotas.recall(report, surrender)

    async def tick(self, reading: Reading | None) -> None:
        """Tell the board again, so that one that started anew is filled; save what changed.

        reading: the board's, None when it did not answer.
        """
        self._reading = reading
        await self._try_to_publish()
        if self.fenced:
            return
        self._set_quotas()
        self._quotas.tick(reading)
        try:
            async with self._changing:
                await self._save_the_rest()
        except Fenced as error:
            log.error("%s: this control stops", error)
        except StoreFailed as error:
            self._note_store(str(error))

    async def close(self) -> None:
        await self._journal.close()

    def _answer(self, verb: str, args: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a verb that changes nothing; None for one that does."""
        now = self._wall()
        match verb:
            case "status":
                record = show.status(self._state, self.tables, now)
                return record | {"store_error": self.store_error, "fenced": self.fenced}
            case "keys":
                return {"keys": show.keys(self._state, self.tables)}
            case "overrides":
                return {"overrides": show.overrides(self._state, now)}
            case "replicas":
                return self._replicas()
            case "usage":
                tenant = validated(OfTenant, args).tenant
                return {"usage": [usage.record_of(row) for row in self._usage.rows(tenant)]}
        return None

    def _replicas(self) -> dict[str, Any]:
        """As the board had them at the last tick: within a second or two. Raises Overloaded."""
        if self._reading is None:
            raise Overloaded(
                "the board does not answer, so nobody knows the replicas: try again",
                reason="board_down",
                retry_after_s=2,
            )
        return show.replicas(self._reading)

    async def _save_state(self, changed: State) -> None:
        """Raises Overloaded: the caller may try again with the same request id."""
        try:
            await self._journal.write(STATE, changed.encode())
        except StoreFailed as error:
            self._note_store(str(error))
            raise Overloaded(
                "control's store failed, so nothing was changed: try again",
                reason="control_store",
                retry_after_s=5,
            ) from error
        except Fenced as error:
            raise Overloaded(
                "another control has taken over: try again", reason="control_down", retry_after_s=5
            ) from error
        self.store_error = ""
        self._state = changed

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

    async def _try_to_publish(self) -> bool:
        """Whether the board took it. It may be away: the next second tries again, and ingresses
        are told with the reply to their next report."""
        if self.fenced:
            return False
        try:
            held = await self._publish_to(published(self._state, self._wall()))
        except Exception as error:  # noqa: BLE001  the edge to the board, whatever carries it
            log.warning("the board did not take the state: %r", error)
            return False
        if held.order > (self._state.epoch, self._state.revision):
            await self._learn_of(held)
        return True

    async def _learn_of(self, held: Published) -> None:
        """The board holds a later word: a successor's, or this store is an older copy."""
        async with self._changing:
            try:
                if not await self._journal.owns(STATE):
                    self._journal.fenced = True
                    log.error("the board holds epoch %d: this control stops", held.epoch)
                    return
                await self._take_over(held)
            except StoreFailed as error:
                self._note_store(str(error))
                return
        log.error("the board's state is later than the store: rollouts are held")

    async def _take_over(self, mirror: Published | None) -> None:
        def next_of(kept: bytes | None) -> tuple[int, bytes]:
            state = take_over(decode(kept) if kept else State(), mirror, self._wall())
            return state.epoch, state.encode()

        before = self._state.epoch
        state = decode(await self._journal.take(STATE, next_of))
        kept = await self._journal.claim(QUOTA)
        first = before == 0 and mirror is None and state.epoch == 1
        self._quotas = self._quota_desk(Book(state.epoch, self._now(), first=first))
        if kept is not None:
            self._restore_quotas(state, kept)
        self._state = state
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
        overrides = published(self._state, self._wall()).overrides
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
        if not self.store_error:
            log.error("%s: serving goes on, changes are refused", error)
        self.store_error = error


def _day(now: float, days_ago: int) -> str:
    return (datetime.fromtimestamp(now, UTC) - timedelta(days=days_ago)).date().isoformat()
