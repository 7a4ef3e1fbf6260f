"""The keys of a table as an operator sees them: who holds which, and whether it still opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from modelyard.config.tenants import Key

State = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One key, never its hash. expires: ISO 8601 in UTC; None: never. No tenant: an operator's."""

    id: str
    tenant: str | None
    roles: tuple[str, ...]
    expires: str | None
    state: State

    def as_record(self) -> dict[str, Any]:
        return asdict(self) | {"roles": list(self.roles)}


def list_keys(keys: Sequence[Key], revoked: frozenset[str], now: datetime) -> tuple[KeyLine, ...]:
    """In the table's order. `now` is aware of its time zone."""
    return tuple(
        KeyLine(
            key.id,
            key.tenant,
            key.roles,
            _text(key.expires),
            state_of(key.id in revoked, key.expires, now),
        )
        for key in keys
    )


def state_of(revoked: bool, expires: datetime | None, now: datetime) -> State:
    if revoked:
        return "revoked"
    return "expired" if expires is not None and expires <= now else "active"


def _text(expires: datetime | None) -> str | None:
    if expires is None:
        return None
    return expires.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
