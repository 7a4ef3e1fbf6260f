"""Judgements of a rollout, counted: by arm, as pairs, and as votes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace
from typing import Any, Final

from modelyard.rollout.columns import conversation_key
from modelyard.rollout.noninferiority import Pairs, Votes
from modelyard.rollout.outcome import Judgement
from modelyard.rollout.packing import dump, load
from modelyard.rollout.seen import Seen

_MOST_UNITS: Final = 6144  # one that comes again after so many others counts again
_MOST_WAITING: Final = 2048  # judgements whose pair has not come


class JudgedAnswers:
    """A unit counts once for each arm. A conversation has one vote for each arm, or one pair.

    good and judged: of (control arm, canary). votes: by step, of judgements without a pair.
    """

    _FIELDS: Final = ("good", "judged")

    def __init__(self) -> None:
        self.good = [0, 0]
        self.judged = [0, 0]
        self.pairs = Pairs()
        self.votes: list[Votes] = [Votes()]
        self._units = Seen(_MOST_UNITS)
        self._conversations = Seen()
        self._waiting: dict[str, tuple[bool, bool]] = {}

    def begin(self) -> None:
        self.votes.append(Votes())

    def add(self, one: Judgement) -> bool:
        """Whether it is new."""
        canary = one.arm != "stable"
        if not self._units.add(conversation_key(f"{canary} {one.unit}")):
            return False
        self.good[canary] += one.good
        self.judged[canary] += 1
        if one.pair:
            self._pair(canary, one)
        elif self._is_first(str(canary), one.conversation):
            self._vote(canary, one.good)
        return True

    def unpaired(self) -> int:
        """Votes of the arm that has fewer."""
        return min(sum(one.stable for one in self.votes), sum(one.canary for one in self.votes))

    def _pair(self, canary: bool, one: Judgement) -> None:
        other = self._waiting.get(one.pair)
        if other is None or other[0] == canary:
            self._waiting[one.pair] = canary, one.good
            if len(self._waiting) > _MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
            return
        del self._waiting[one.pair]
        if self._is_first("pair", one.conversation):
            better = one.good - other[1] if canary else other[1] - one.good
            self.pairs = Pairs(
                self.pairs.pairs + 1,
                self.pairs.better + (better > 0),
                self.pairs.worse + (better < 0),
            )

    def _is_first(self, kind: str, conversation: str) -> bool:
        return not conversation or self._conversations.add(
            conversation_key(f"{kind} {conversation}")
        )

    def _vote(self, canary: bool, good: bool) -> None:
        votes = self.votes[-1]
        self.votes[-1] = (
            replace(votes, canary=votes.canary + 1, canary_good=votes.canary_good + good)
            if canary
            else replace(votes, stable=votes.stable + 1, stable_good=votes.stable_good + good)
        )

    def state(self) -> dict[str, Any]:
        return {
            **dump(self, self._FIELDS),
            "units": self._units.state(),
            "conversations": self._conversations.state(),
            "waiting": [[pair, *value] for pair, value in self._waiting.items()],
            "pairs": astuple(self.pairs),
            "votes": [astuple(votes) for votes in self.votes],
        }

    def restore(self, state: dict[str, Any]) -> None:
        load(self, self._FIELDS, state)
        self._units.restore(state["units"])
        self._conversations.restore(state["conversations"])
        self._waiting = {pair: (canary, good) for pair, canary, good in state["waiting"]}
        self.pairs = Pairs(*state["pairs"])
        self.votes = [Votes(*votes) for votes in state["votes"]]


def valid_of(judgements: Iterable[Judgement], rollout: str) -> list[Judgement]:
    """Those of other rollouts and malformed ones are left out. In an order of their own: one that
    came twice in a batch with two words counts as bad, whatever the order."""
    valid = [one for one in judgements if _is_valid(one, rollout)]
    return sorted(valid, key=lambda one: (one.unit, one.arm, one.good, one.pair))


def _is_valid(one: Judgement, rollout: str) -> bool:
    return (
        isinstance(one, Judgement)
        and one.rollout == rollout
        and one.arm in ("stable", "canary", "shadow")
        and all(isinstance(text, str) for text in (one.unit, one.conversation, one.pair))
        and isinstance(one.good, bool)
    )
