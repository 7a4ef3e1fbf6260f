"""Where the state is kept. Stored before it is told, but a rollback waits for no disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from modelyard.contract.errors import Overloaded
from modelyard.control.journal import Fenced, Journal
from modelyard.control.rollout_states import ended_in
from modelyard.control.state import State
from modelyard.control.store import StoreFailed
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.record import RolloutRecord

log = logging.getLogger("modelyard.control")

STATE: Final = "state"
# A store in order takes a rollback sooner. One that is told before it is stored, by a control that
# dies then, is learned from the board.
HEAD_START_S: Final = 0.3


class StateKeeper:
    """One per control. `changing` is held around every use of the journal.

    A revision is given once: to what is written, whether the store took it or not, or to what is in
    force without the store. So no two words share one, and the later word is the one to believe.
    """

    def __init__(self, journal: Journal, note_store: Callable[[str], None]) -> None:
        """note_store: is told why the store fails, and "" once it works."""
        self._journal = journal
        self._note = note_store
        self._stored = self._in_force = State()
        self._revision = 0  # the highest that was given
        self._unstored: dict[str, RolloutRecord] = {}
        self._storing: set[asyncio.Task[bool]] = set()
        self.changing = asyncio.Lock()

    @property
    def state(self) -> State:
        """What is in force: what the store has, and rollbacks that it could not take yet. The same
        object until something changes."""
        return self._in_force

    @property
    def order(self) -> tuple[int, int]:
        state = self.state
        return state.epoch, state.revision

    @property
    def stored_revision(self) -> int:
        """Of what the store has; less than that of `state` while a rollback waits for it."""
        return self._stored.revision

    @property
    def unstored(self) -> frozenset[str]:
        """Rollouts whose rollback is in force and in no store."""
        return frozenset(self._unstored)

    def adopt(self, stored: State) -> None:
        """What was just read or written. Rollbacks that no store has stay in force."""
        self._stored = stored
        self._revision = max(self._revision, stored.revision)
        self._unstored = {
            rollout: ended
            for rollout, ended in self._unstored.items()
            if not _is_rolled_back(stored, rollout)
        }
        self._overlay()

    async def save(self, changed: State) -> None:
        """With `changing` held. Raises Overloaded: nothing has changed, the caller may try again
        with the same request id."""
        if changed is not self._in_force and changed.revision <= self._revision:
            changed = changed.model_copy(update={"revision": self._revision + 1})
        self._revision = max(self._revision, changed.revision)
        try:
            await self._journal.write(STATE, changed.encode())
        except StoreFailed as error:
            self._note(str(error))
            raise Overloaded(
                "control's store failed, so nothing was changed: try again",
                reason="control_store",
                retry_after_s=5,
            ) from error
        except Fenced as error:
            raise succeeded() from error
        self._note("")
        self.adopt(changed)

    async def roll_back(self, ended: RolloutRecord) -> None:
        """Put a rollback in force, at the latest after HEAD_START_S. The caller tells the
        ingresses. Where it is not stored then, `retry` goes on.

        ended: the record as it was seen, with the rollback as its last decision; that is put on
        whatever the record is by then.
        """
        storing = asyncio.create_task(self._store(ended))
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)
        await asyncio.wait({storing}, timeout=HEAD_START_S)
        if storing.done() and storing.result():
            return
        if ended_in(self._in_force, ended) is not self._in_force:
            self._unstored[ended.id] = ended
            self._overlay()

    async def retry(self) -> None:
        """Store what is in force and in no store, if anything is."""
        for ended in tuple(self._unstored.values()):
            await self._store(ended)

    async def close(self) -> None:
        for task in tuple(self._storing):
            task.cancel()
        await asyncio.gather(*self._storing, return_exceptions=True)

    def _overlay(self) -> None:
        """A word that was told is never followed by one of a lower revision, nor by another one of
        its own: a write that was under way meanwhile commits a revision below it."""
        before, state = self._in_force, self._stored
        for ended in self._unstored.values():
            state = ended_in(state, ended, told=True)
        if state is not self._stored or (before.epoch, before.revision) > (
            state.epoch,
            state.revision,
        ):
            self._revision += 1
            state = state.model_copy(update={"revision": self._revision})
        self._in_force = state

    async def _store(self, ended: RolloutRecord) -> bool:
        """Whether nothing of it is left to do."""
        async with self.changing:
            changed = ended_in(self._in_force, ended, told=ended.id in self._unstored)
            if changed is self._in_force and ended.id not in self._unstored:
                return True
            try:
                await self.save(changed)
            except Overloaded as error:
                log.error("the rollback of %s is not stored yet: %s", ended.id, error)
                return False
        return True


def succeeded() -> Overloaded:
    return Overloaded(
        "another control has taken over: try again", reason="control_down", retry_after_s=5
    )


def _is_rolled_back(state: State, rollout: str) -> bool:
    record = state.rollouts.get(rollout)
    return record is not None and record.phase is RolloutPhase.ROLLED_BACK
