"""Where the state is kept. Stored before it is told, but a rollback waits for no disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from modelyard.contract.errors import Overloaded
from modelyard.control.journal import Fenced, Journal
from modelyard.control.rollout_states import keep
from modelyard.control.state import State
from modelyard.control.store import StoreFailed
from modelyard.rollout.record import RolloutRecord

log = logging.getLogger("modelyard.control")

STATE: Final = "state"
# A store in order takes a rollback sooner. One that is told before it is stored, by a control that
# dies then, is learned from the board, and a human must look before rollouts move again.
HEAD_START_S: Final = 0.3


class StateKeeper:
    """One per control. `changing` is held around every use of the journal."""

    def __init__(self, journal: Journal, note_store: Callable[[str], None]) -> None:
        """note_store: is told why the store fails, and "" once it works."""
        self._journal = journal
        self._note = note_store
        self._stored = self._in_force = State()
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
    def unstored(self) -> frozenset[str]:
        """Rollouts whose rollback is in force and in no store."""
        return frozenset(self._unstored)

    def adopt(self, stored: State) -> None:
        """What was just read or written. Rollbacks that no store has stay in force."""
        self._stored = stored
        self._unstored = {
            rollout: record
            for rollout, record in self._unstored.items()
            if keep(stored, record) is not stored
        }
        self._overlay()

    async def save(self, changed: State) -> None:
        """With `changing` held. Raises Overloaded: nothing has changed, the caller may try again
        with the same request id."""
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

    async def roll_back(self, record: RolloutRecord) -> bool:
        """Put a rollback in force, at the latest after HEAD_START_S; whether it is stored. The
        caller tells the ingresses. Where it is not stored, `retry` goes on."""
        storing = asyncio.create_task(self._store(record))
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)
        await asyncio.wait({storing}, timeout=HEAD_START_S)
        if storing.done() and storing.result():
            return True
        if keep(self._stored, record) is not self._stored:
            self._unstored[record.id] = record
            self._overlay()
        return False

    async def retry(self) -> None:
        """Store what is in force and in no store, if anything is."""
        for record in tuple(self._unstored.values()):
            await self._store(record)

    async def close(self) -> None:
        for task in tuple(self._storing):
            task.cancel()
        await asyncio.gather(*self._storing, return_exceptions=True)

    def _overlay(self) -> None:
        state = self._stored
        for record in self._unstored.values():
            state = keep(state, record)
        self._in_force = state

    async def _store(self, record: RolloutRecord) -> bool:
        async with self.changing:
            changed = keep(self.state, record)
            if changed is self._stored:
                return True
            try:
                await self.save(changed)
            except Overloaded as error:
                log.error("the rollback of %s is not stored yet: %s", record.id, error)
                return False
        return True


def succeeded() -> Overloaded:
    return Overloaded(
        "another control has taken over: try again", reason="control_down", retry_after_s=5
    )
