"""Which conversations have had their event."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MOST: Final = 2048


class Seen:
    """The latest `most`: one that comes again after that counts again, as another conversation."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._keys: dict[int, None] = {}

    def first(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these are the first of theirs; 0, of no conversation, always is."""
        firsts: NDArray[np.bool_] = keys == 0
        for index in np.flatnonzero(~firsts):
            firsts[index] = self.add(int(keys[index]))
        return firsts

    def add(self, key: int) -> bool:
        """Whether it is new."""
        if key in self._keys:
            return False
        self._keys[key] = None
        if len(self._keys) > self._most:
            del self._keys[next(iter(self._keys))]
        return True

    def state(self) -> dict[str, Any]:
        return {"keys": np.array(list(self._keys), dtype=np.int64).astype("<u4")}

    def restore(self, state: dict[str, Any]) -> None:
        self._keys = dict.fromkeys(int(key) for key in state["keys"])
