"""Counts of the few largest by name, the rest as one: a label that cannot grow without bound."""

from __future__ import annotations

from typing import Final

OTHER: Final = "other"
REVIEW_S: Final = 60.0
CANDIDATES_MAX: Final = 4096
TAKES_OVER: Final = 2.0  # a newcomer must be twice as large, or two equals would swap for ever


class TopN:
    """Adds up amounts for at most `n` names, and for all others together.

    No series ever falls: what a name used before it was chosen stays with the others, and one that
    loses its place is dropped whole (Prometheus takes its return for a restart). Names are chosen
    by what they used since the last review, once a minute.
    """

    def __init__(self, n: int, now: float) -> None:
        self._n = n
        self._reviewed = now
        self._shown: dict[str, list[int]] = {}
        self._other: list[int] = []
        self._recent: dict[str, int] = {}

    def add(self, name: str, amounts: tuple[int, ...]) -> None:
        """`amounts`: always as many, in one order, none below zero."""
        if name in self._recent or len(self._recent) < CANDIDATES_MAX:
            self._recent[name] = self._recent.get(name, 0) + sum(amounts)
        held = self._shown.get(name)
        if held is None and len(self._shown) < self._n:
            held = self._shown[name] = []
        _add(self._other if held is None else held, amounts)

    def review(self, now: float) -> None:
        """Give the places of the smallest to newcomers that are larger by far. At most one each
        minute does anything."""
        if now - self._reviewed < REVIEW_S:
            return
        self._reviewed = now
        recent, self._recent = self._recent, {}
        newcomers = sorted(
            (name for name in recent if name not in self._shown), key=lambda name: -recent[name]
        )
        for newcomer in newcomers[: self._n]:
            smallest = min(self._shown, key=lambda name: recent.get(name, 0))
            if recent[newcomer] <= TAKES_OVER * recent.get(smallest, 0):
                return
            del self._shown[smallest]
            self._shown[newcomer] = []

    def amounts(self) -> dict[str, tuple[int, ...]]:
        """By name, and under `other` what is left, where there is any."""
        shown = {name: tuple(held) for name, held in list(self._shown.items()) if held}
        return shown | ({OTHER: tuple(self._other)} if self._other else {})


def _add(held: list[int], amounts: tuple[int, ...]) -> None:
    if not held:
        held.extend(amounts)
        return
    for place, amount in enumerate(amounts):
        held[place] += amount
