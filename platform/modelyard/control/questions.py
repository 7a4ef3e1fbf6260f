"""What an operator may ask of control without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from modelyard.contract.errors import Overloaded
from modelyard.contract.validate import validated
from modelyard.control import show, usage
from modelyard.control.arguments import Judgements, OfRollout, OfTenant
from modelyard.control.keeper import StateKeeper
from modelyard.control.last_table import LastTable
from modelyard.control.rollout_desk import RolloutDesk
from modelyard.control.usage import UsageBook
from modelyard.rollout.outcome import Judgement


class Questions:
    """One per control."""

    def __init__(
        self,
        keeper: StateKeeper,
        tables: LastTable,
        rollouts: RolloutDesk,
        wall: Callable[[], float],
    ) -> None:
        self._keeper = keeper
        self._tables = tables
        self._rollouts = rollouts
        self._wall = wall

    def answer(self, verb: str, args: Mapping[str, Any], used: UsageBook) -> dict[str, Any] | None:
        """The answer to a verb that leaves the state as it is; None for one that does not. Raises
        RequestError."""
        now, state = self._wall(), self._keeper.state
        match verb:
            case "status":
                return show.status(state, self._tables, now)
            case "keys":
                return {"keys": show.keys(state, self._tables)}
            case "overrides":
                return {"overrides": show.overrides(state, now)}
            case "replicas":
                return self._replicas()
            case "usage":
                tenant = validated(OfTenant, args).tenant
                return {"usage": [usage.record_of(row) for row in used.rows(tenant)]}
            case "rollouts":
                return {"rollouts": self._rollouts.views(state, now)}
            case "rollout":
                return self._rollouts.view(state, validated(OfRollout, args).rollout, now)
            case "rollout_history":
                rollout = validated(OfRollout, args).rollout
                return {"decisions": self._rollouts.history(state, rollout, now)}
            case "judge_rollout":
                return {"taken": self._judge(validated(Judgements, args))}
        return None

    def _judge(self, args: Judgements) -> int:
        """Evidence is in no commit: it is saved with the rest of it, seconds later."""
        made = tuple(
            Judgement(
                rollout=args.rollout,
                arm=one.arm,
                unit=one.unit,
                conversation="",
                good=one.good,
                source=args.source,
                pair=one.pair,
            )
            for one in args.judgements
        )
        return self._rollouts.judge(self._keeper.state, made, self._wall())

    def _replicas(self) -> dict[str, Any]:
        """As the board had them at the last tick: within a second or two. Raises Overloaded."""
        if self._rollouts.demands.reading is None:
            raise Overloaded(
                "the board does not answer, so nobody knows the replicas: try again",
                reason="board_down",
                retry_after_s=2,
            )
        return show.replicas(self._rollouts.demands.reading)
