"""What became of the items of a golden set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from modelyard.rollout.golden_item import GoldenItem


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of one item: each arm's answer, None where there was none, and why not."""

    number: int
    item: GoldenItem
    stable: str | None
    canary: str | None
    fault: str = ""

    @property
    def answered(self) -> bool:
        return self.stable is not None and self.canary is not None

    @property
    def differs(self) -> bool:
        return self.answered and self.stable != self.canary

    @property
    def good(self) -> tuple[bool, bool]:
        """Of the stable version and of the canary."""
        holds = self.item.expect.holds
        return holds(self.stable or ""), holds(self.canary or "")


def judgements(done: Sequence[Replayed]) -> list[dict[str, Any]]:
    """The body's records of `POST /admin/rollouts/ID/judgements`: only pairs, both arms or none."""
    return [
        {"unit": f"{one.item.key}:{arm}", "arm": arm, "good": good, "pair": one.item.key}
        for one in done
        if one.answered
        for arm, good in zip(("stable", "canary"), one.good, strict=True)
    ]
