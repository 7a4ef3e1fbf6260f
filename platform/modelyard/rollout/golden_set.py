"""A golden set as a file: JSON Lines, one item a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError

from modelyard.config.explain import explain
from modelyard.config.faults import dotted
from modelyard.contract.errors import ConfigError
from modelyard.rollout.golden_item import GoldenItem

MAX_ITEMS: Final = 10_000
_SHOWN_FAULTS: Final = 20


def parse_golden_set(data: bytes, source: str) -> tuple[GoldenItem, ...]:
    """JSON Lines; empty lines and those that begin with # count for nothing.

    Raises ConfigError: a line per fault, with the file, the line and the field.
    """
    items: list[GoldenItem] = []
    first: dict[str, int] = {}
    faults: list[str] = []
    for number, line in _lines(data):
        try:
            item = _item(line)
        except ConfigError as error:
            faults.append(f"{source}:{number}: {error}")
            continue
        if item.key in first:
            faults.append(f"{source}:{number}: the same as line {first[item.key]}: drop one")
        first.setdefault(item.key, number)
        items.append(item)
    if len(items) > MAX_ITEMS:
        faults.append(f"{source}: {len(items)} items, and at most {MAX_ITEMS} are asked: split it")
    if not items and not faults:
        faults.append(f"{source}: holds no item: write one JSON object a line")
    if faults:
        raise ConfigError("\n".join(faults[:_SHOWN_FAULTS]))
    return tuple(items)


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            yield number, line


def _item(line: bytes) -> GoldenItem:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"no JSON ({error}): write one object a line") from error
    try:
        return GoldenItem.model_validate(record)
    except ValidationError as error:
        problems = explain(error, GoldenItem, record)
        words = (f"{dotted(one.path)}: {one.message}" for one in problems)
        raise ConfigError("; ".join(word.removeprefix(": ") for word in words)) from error
