"""Counts in a row, and the sum of the first few."""

from __future__ import annotations


class PrefixSums:
    """A binary indexed tree (Fenwick, 1994) that grows and shrinks at its end. O(log n) a step."""

    __slots__ = ("_counts", "_tree")

    def __init__(self) -> None:
        self._counts: list[int] = []
        self._tree = [0]  # [i]: sum of the last (i & -i) counts up to the i-th

    def __len__(self) -> int:
        return len(self._counts)

    def __getitem__(self, at: int) -> int:
        return self._counts[at]

    def append_zero(self) -> None:
        self._counts.append(0)
        end = len(self._counts)
        total, width = 0, 1
        while width < end & -end:
            total += self._tree[end - width]
            width *= 2
        self._tree.append(total)

    def pop(self) -> None:
        """Drop the last count."""
        self._counts.pop()
        self._tree.pop()

    def add(self, at: int, change: int) -> None:
        self._counts[at] += change
        at += 1
        while at < len(self._tree):
            self._tree[at] += change
            at += at & -at

    def of_first(self, count: int) -> int:
        """Sum of the first `count`, or of all where there are fewer."""
        count = min(count, len(self._counts))
        total = 0
        while count:
            total += self._tree[count]
            count -= count & -count
        return total
