"""Where control moves its rollouts: the evidence in, the next moves and the views out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modelyard.config.table import Table
from modelyard.contract.errors import NotFound
from modelyard.control import rollout_views
from modelyard.control.demand import Demands
from modelyard.control.evidence import EvidenceKind
from modelyard.control.evidence_shelf import EvidenceShelf
from modelyard.control.published import Published
from modelyard.control.reading import Reading
from modelyard.control.rollout_look import look_at
from modelyard.control.rollout_shown import RolloutsShown
from modelyard.control.rollout_states import LATEST, Planned, keep, planned_in, records
from modelyard.control.rollout_wishes import shadows, wishes
from modelyard.control.state import State, published
from modelyard.rollout.look import Look
from modelyard.rollout.machine import advance
from modelyard.rollout.outcome import Judgement
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.record import Decision, RolloutRecord


class RolloutDesk:
    """One per control. It decides and stores nothing: its owner commits, then calls `settle`.

    table: the one that Serve gave to this process, None before it; nothing moves by itself without
    it. kept: the last good one of the store, to show and to turn back by until then.
    """

    def __init__(self, kind: EvidenceKind, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.shelf = EvidenceShelf(kind, monotonic)
        self.demands = Demands()
        self.table: Table | None = None
        self.kept: Table | None = None
        self.settled = False
        self.shown = RolloutsShown()

    @property
    def known(self) -> Table | None:
        return self.table or self.kept

    def read(self, reading: Reading | None) -> None:
        """The board's, once a second; None when it did not answer."""
        self.demands.take(reading, planned_in(self.known).values(), self._monotonic())

    def word(self, state: State, now: float, stored: int) -> Published:
        """What is published: the state, and what rollouts need of the fleet. stored: the revision
        that the store has."""
        own = wishes(state, self.known, self.demands, now)
        return published(state, now, own, shadows(state, self.known), self.table, stored)

    def rollbacks(self, state: State, now: float) -> list[RolloutRecord]:
        """What must end now, as it is then."""
        return [
            moved
            for record, planned in records(state, self.table)
            if (moved := self._moved(record, planned, state, now)[0]) is not record
            and moved.phase is RolloutPhase.ROLLED_BACK
        ]

    def next_move(self, state: State, now: float) -> tuple[State, Decision] | None:
        """The state after the first other move that is due; None when none is. No table is not an
        empty one: until the first has come, nothing has vanished from it."""
        if self.table is None:
            return None
        for record, planned in records(state, self.table):
            moved, decision = self._moved(record, planned, state, now)
            if decision is not None and moved.phase is not RolloutPhase.ROLLED_BACK:
                return keep(state, moved), decision
        return None

    def settle(self, state: State, now: float) -> None:
        """The evidence follows the state: a step's begins when it is in the store."""
        found = list(records(state, self.table))
        if self.table is not None:
            self.shelf.forget_all_but({record.id for record, _ in found})
            self.settled = True
        for record, planned in found:
            if record.over:
                self.shelf.drop(record.id)
            elif record.begun and planned is not None and _is_of(record, planned):
                self.shelf.settle(record, planned.plan, now)

    def remember(self, state: State) -> None:
        """For metrics: rollouts that the table has, or that run."""
        found = [
            record
            for record, planned in records(state, self.table)
            if planned is not None or not record.over
        ]
        shelf = self.shelf.by_rollout
        outcomes: dict[tuple[str, str, str], float] = {}
        for (rollout, arm, kind), count in self.shelf.outcomes.items():
            kept = state.rollouts.get(rollout)
            key = (kept.alias if kept is not None else "", arm, kind)
            outcomes[key] = outcomes.get(key, 0.0) + count
        self.shown = RolloutsShown(
            tuple(
                (one, shelf[one.id].evidence.verdicts() if one.id in shelf else ()) for one in found
            ),
            tuple(outcomes.items()),
        )

    def look(self, state: State, rollout: str, now: float) -> tuple[RolloutRecord, Look]:
        """Raises NotFound for an id that neither the table nor the state knows."""
        record, planned = self._found(state, rollout)
        return record, look_at(rollout, planned, state, self.demands, self.shelf, now)

    def view(self, state: State, rollout: str, now: float) -> dict[str, Any]:
        record, planned = self._found(state, rollout)
        return self._view(record, planned, state, now)

    def views(self, state: State, now: float) -> list[dict[str, Any]]:
        """Those of the table and those that run first, then ended ones, the latest first."""
        found = list(records(state, self.known))
        live = [one for one in found if one[1] is not None or not one[0].over]
        ended = [one for one in found if one not in live and one[0].history]
        ended.sort(key=lambda one: -one[0].since)
        shown = (*live, *ended[:LATEST])
        return [self._view(record, planned, state, now) for record, planned in shown]

    def history(self, state: State, rollout: str, now: float) -> list[dict[str, Any]]:
        return rollout_views.history(self._found(state, rollout)[0], now)

    def judge(self, state: State, judgements: tuple[Judgement, ...], now: float) -> int:
        """Of a golden set. Raises NotFound; takes none for a rollout that collects no evidence."""
        rollout = judgements[0].rollout
        self._found(state, rollout)
        if rollout not in self.shelf.by_rollout:
            return 0
        self.shelf.judge(judgements, now)
        return len(judgements)

    def _moved(
        self, record: RolloutRecord, planned: Planned | None, state: State, now: float
    ) -> tuple[RolloutRecord, Decision | None]:
        if record.over or self.table is None:
            return record, None
        look = look_at(record.id, planned, state, self.demands, self.shelf, now)
        return advance(record, look)

    def _view(
        self, record: RolloutRecord, planned: Planned | None, state: State, now: float
    ) -> dict[str, Any]:
        look = look_at(record.id, planned, state, self.demands, self.shelf, now)
        return rollout_views.view(record, planned, look, self.shelf.by_rollout.get(record.id))

    def _found(self, state: State, rollout: str) -> tuple[RolloutRecord, Planned | None]:
        for record, planned in records(state, self.known):
            if record.id == rollout:
                return record, planned
        raise NotFound(
            f"there is no rollout {rollout!r}: look under `routes` of the table",
            param="rollout",
            reason="no_rollout",
        )


def _is_of(record: RolloutRecord, planned: Planned) -> bool:
    """Not of a table that gave the id to other versions: that aborts it."""
    return (record.stable, record.canary) == (planned.stable, planned.canary)
