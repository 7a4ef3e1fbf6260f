"""Which conversations have had their event."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.packing import UnreadableEvidence

MOST: Final = 2048
_PLACES: Final = 1 << 16  # 8 KB; at 200 requests/s a window has half as many slow ones

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Seen:
    """The latest `most`: one that comes again after that counts again, as another conversation."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._keys: dict[int, None] = {}

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


class SeenInWindow:
    """A place for each conversation, by its key: two that share one count as one.

    What is lost so is lost on both arms alike, whose conversations have the same keys by chance: it
    costs evidence and never makes any, while forgetting the oldest would count one twice.
    """

    def __init__(self) -> None:
        self._taken: Bools = np.zeros(_PLACES, dtype=np.bool_)

    def begin_window(self) -> None:
        self._taken[:] = False

    def has(self, keys: Ints) -> Bools:
        """0, of no conversation, never is."""
        result: Bools = self._taken[keys % _PLACES] & (keys != 0)
        return result

    def first(self, keys: Ints) -> Bools:
        """Which of these are the first of theirs; 0 always is. All of them are seen then."""
        firsts: Bools = keys == 0
        rows = np.flatnonzero(~firsts)
        places, index = np.unique(keys[rows] % _PLACES, return_index=True)
        firsts[rows[index]] = ~self._taken[places]
        self._taken[places] = True
        return firsts

    def state(self) -> dict[str, Any]:
        return {"taken": np.packbits(self._taken)}

    def restore(self, state: dict[str, Any]) -> None:
        """Raises UnreadableEvidence."""
        packed = state["taken"]
        if np.shape(packed) != (_PLACES // 8,) or packed.dtype != np.uint8:
            raise UnreadableEvidence("a rollout's evidence has another shape: begin it anew")
        self._taken = np.unpackbits(packed).astype(np.bool_)
