"""An operator's order to a replica to leave."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.control.published import OF_REPLICA, Published


@dataclass(frozen=True, slots=True)
class DrainOrder:
    """Whose order, and why."""

    author: str
    reason: str

    def __str__(self) -> str:
        return f"drained by {self.author}: {self.reason}"


def drain_order(published: Published | None, replica: str) -> DrainOrder | None:
    """The order to this replica in control's word, if there is one."""
    for override in published.overrides if published is not None else ():
        if override.kind == "drain" and override.target == OF_REPLICA + replica:
            return DrainOrder(override.author, override.reason)
    return None
