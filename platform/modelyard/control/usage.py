"""Who has used how much: totals that each ingress reports, and control adds up and keeps.

An ingress sends its totals, never differences: a report that comes twice, late or not at all
changes nothing, and a control that starts anew is whole again after the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

KEPT_DAYS: Final = 32
SETTLED_AFTER_S: Final = 3600.0  # an ingress silent for so long has ended


@dataclass(frozen=True, slots=True)
class UsageKey:
    """day: UTC, `2026-11-30`. model: the alias that was asked for."""

    day: str
    tenant: str
    model: str
    version: str


@dataclass(frozen=True, slots=True)
class Amounts:
    """refused: answered with an error of ours, whatever its cause."""

    requests: int = 0
    refused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def plus(self, other: Amounts) -> Amounts:
        return Amounts(*(getattr(self, name) + getattr(other, name) for name in _AMOUNTS))

    def largest(self, other: Amounts) -> Amounts:
        return Amounts(*(max(getattr(self, name), getattr(other, name)) for name in _AMOUNTS))


UsageRow = tuple[UsageKey, Amounts]
_AMOUNTS: Final = tuple(one.name for one in fields(Amounts))
_KEYS: Final = tuple(one.name for one in fields(UsageKey))


class UsageLedger:
    """One ingress's own totals of today and yesterday."""

    def __init__(self) -> None:
        self._totals: dict[UsageKey, Amounts] = {}

    def add(self, key: UsageKey, amounts: Amounts) -> None:
        self._totals[key] = self._totals.get(key, Amounts()).plus(amounts)

    def report(self, oldest_day: str) -> tuple[UsageRow, ...]:
        """Every total from `oldest_day` on; older ones were reported often enough, and go."""
        self._totals = {k: v for k, v in self._totals.items() if k.day >= oldest_day}
        return tuple(self._totals.items())


class UsageBook:
    """Control's: the sum of ingresses that ended, and the last totals of those that live."""

    def __init__(self) -> None:
        self._ended: dict[UsageKey, Amounts] = {}
        self._living: dict[str, tuple[dict[UsageKey, Amounts], float]] = {}

    def report(self, ingress: str, rows: Iterable[UsageRow], now: float) -> None:
        """Totals only grow, so of two reports the larger is the later, in whatever order."""
        held, _ = self._living.get(ingress, ({}, now))
        for key, amounts in rows:
            held[key] = held.get(key, Amounts()).largest(amounts)
        self._living[ingress] = (held, now)

    def tidy(self, now: float, oldest_day: str) -> None:
        """Fold in the ingresses that ended, and forget days before `oldest_day`.

        The id of an ingress is never used again, so nothing is counted twice.
        """
        for ingress, (held, seen) in list(self._living.items()):
            if now - seen >= SETTLED_AFTER_S:
                for key, amounts in held.items():
                    self._ended[key] = self._ended.get(key, Amounts()).plus(amounts)
                del self._living[ingress]
        self._ended = _since(self._ended, oldest_day)
        self._living = {
            ingress: (_since(held, oldest_day), seen)
            for ingress, (held, seen) in self._living.items()
        }

    def rows(self, tenant: str | None = None) -> list[UsageRow]:
        totals = dict(self._ended)
        for held, _ in self._living.values():
            for key, amounts in held.items():
                totals[key] = totals.get(key, Amounts()).plus(amounts)
        ordered = sorted(totals.items(), key=lambda row: (row[0].day, row[0].tenant, row[0].model))
        return [row for row in ordered if tenant is None or row[0].tenant == tenant]

    def encode(self) -> bytes:
        living = {
            ingress: [_flat(row) for row in held.items()]
            for ingress, (held, _) in self._living.items()
        }
        ended = [_flat(row) for row in self._ended.items()]
        return json.dumps({"ended": ended, "living": living}).encode()

    @classmethod
    def decode(cls, data: bytes, now: float) -> UsageBook:
        """As kept, with every ingress seen just now: its silence is counted from here."""
        book, record = cls(), json.loads(data)
        book._ended = dict(_row(flat) for flat in record["ended"])
        for ingress, flats in record["living"].items():
            book.report(ingress, [_row(flat) for flat in flats], now)
        return book


def _since(totals: dict[UsageKey, Amounts], oldest_day: str) -> dict[UsageKey, Amounts]:
    return {key: amounts for key, amounts in totals.items() if key.day >= oldest_day}


def record_of(row: UsageRow) -> dict[str, Any]:
    """A row as JSON shows it."""
    key, amounts = row
    return {name: getattr(key, name) for name in _KEYS} | {
        name: getattr(amounts, name) for name in _AMOUNTS
    }


def _flat(row: UsageRow) -> list[Any]:
    return list(record_of(row).values())


def _row(flat: list[Any]) -> UsageRow:
    return UsageKey(*flat[: len(_KEYS)]), Amounts(*flat[len(_KEYS) :])
