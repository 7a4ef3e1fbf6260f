"""What a replay found, for a human and as JSON."""

from __future__ import annotations

import shutil
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

from modelyard.rollout.replayed import Replayed

_WIDTH: Final = 100
_MAX_TEXT: Final = 2000
_BETWEEN: Final = " | "
# Control, format (bidirectional overrides, zero widths), line and paragraph separators, half pairs.
_OBEYED: Final = frozenset(("Cc", "Cf", "Zl", "Zp", "Cs"))


def replay_text(view: dict[str, Any], done: Sequence[Replayed]) -> str:
    """Every item on which the arms differ, both answers side by side; the sum comes last."""
    width = shutil.get_terminal_size((_WIDTH, 0)).columns
    lines: list[str] = []
    for one in done:
        if not one.answered:
            lines += [f"item {one.number}: NOT ANSWERED: {_visible(one.fault)}", ""]
        elif one.differs:
            lines += [*_item(one, view, width), ""]
    return "\n".join([*lines, summary(view, done)])


def replay_record(done: Sequence[Replayed]) -> list[dict[str, Any]]:
    return [
        {
            "item": one.number,
            "question": one.item.question,
            "expect": str(one.item.expect),
            "stable": one.stable,
            "canary": one.canary,
            "stable_good": one.good[0] if one.answered else None,
            "canary_good": one.good[1] if one.answered else None,
            "fault": one.fault,
        }
        for one in done
    ]


def summary(view: dict[str, Any], done: Sequence[Replayed]) -> str:
    both = [one for one in done if one.answered]
    stable, canary = (sum(one.good[arm] for one in both) for arm in (0, 1))
    worse = sum(one.good == (True, False) for one in both)
    better = sum(one.good == (False, True) for one in both)
    missing = f"; {len(done) - len(both)} NOT ANSWERED" if len(both) < len(done) else ""
    return (
        f"of {len(both)} items {view['stable']} has {stable} right, {view['canary']} {canary}: "
        f"{sum(one.differs for one in both)} answers differ, {worse} only the stable version has "
        f"right, {better} only the canary{missing}"
    )


def _item(one: Replayed, view: dict[str, Any], width: int) -> Iterator[str]:
    stable, canary = ("right" if good else "WRONG" for good in one.good)
    yield f"item {one.number}: {_visible(str(one.item.expect))}"
    yield f"  asked: {_visible(textwrap.shorten(one.item.question, width - 9))}"
    half = max(20, (width - len(_BETWEEN) - 2) // 2)
    left = [f"{view['stable']} {stable}", *_wrapped(one.stable, half)]
    right = [f"{view['canary']} {canary}", *_wrapped(one.canary, half)]
    for pair in zip_longest(left, right, fillvalue=""):
        yield f"  {pair[0]:<{half}}{_BETWEEN}{pair[1]}".rstrip()


def _wrapped(text: str | None, width: int) -> list[str]:
    # Not splitlines, which takes characters out that a reader should see.
    lines = _visible(text[:_MAX_TEXT].removesuffix("\n")).split("\n") if text else []
    return [part for line in lines for part in textwrap.wrap(line, width) or [""]]


def _visible(text: str) -> str:
    """What a terminal would obey, or show as something else, as an escape: a model's answer may
    hold what moves the cursor, writes a title, or turns the order of characters round."""
    return "".join(
        one.encode("unicode_escape").decode()
        if one not in "\n\t" and unicodedata.category(one) in _OBEYED
        else one
        for one in text
    )
