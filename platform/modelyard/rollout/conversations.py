"""How many conversations of each arm a step has seen."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from modelyard.rollout.columns import Columns
from modelyard.rollout.packing import dump, load

# A handful of agents can make thousands of requests, and are a handful of cases all the same.
ENOUGH: Final = 20
# To fail it fewer do, for harm does not wait; but one that fails at each turn has an event in each
# window, and is one conversation.
FEWEST: Final = 5


class Conversations:
    """Up to ENOUGH of each arm. A request without a conversation counts for one."""

    _FIELDS: Final = ("_keys", "_alone")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._keys: list[list[int]] = [[], []]
        self._alone = [0, 0]

    def count(self, arm: int) -> int:
        return min(len(self._keys[arm]) + self._alone[arm], ENOUGH)

    def take(self, columns: Columns) -> None:
        for arm in (0, 1):
            if self.count(arm) >= ENOUGH:
                continue
            keys = columns.conversation[columns.canary == bool(arm)]
            self._alone[arm] += int((keys == 0).sum())
            known = {*self._keys[arm], *np.unique(keys[keys != 0]).tolist()}
            self._keys[arm] = sorted(known)[:ENOUGH]

    def state(self) -> dict[str, Any]:
        return dump(self, self._FIELDS)

    def restore(self, state: dict[str, Any]) -> None:
        load(self, self._FIELDS, state)
