"""A batch of outcomes as arrays, of what is valid in it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.histogram import position
from modelyard.rollout.outcome import Outcome
from modelyard.rollout.strata import Strata

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST: Final = 1e7  # tokens, and seconds (four months): more is no measurement
_Row = tuple[bool, int, bool, int, float, float, float, bool]


@dataclass(frozen=True, slots=True)
class Columns:
    """Requests that were answered or failed, a row each.

    canary: its arm; False is the control arm. failed: or refused by the version. conversation: 0
    where it stands for itself. ttft and e2e: histogram positions, nan where there is none.
    log_tokens: log(1 + tokens), nan unless answered. cancelled: by their clients, of (control,
    canary). compared and matches: of shadow copies. refused: among the failed; None: none of them.
    """

    canary: Bools
    stratum: Ints
    failed: Bools
    conversation: Ints
    ttft: Floats
    e2e: Floats
    log_tokens: Floats
    cancelled: tuple[int, int] = (0, 0)
    compared: int = 0
    matches: int = 0
    refused: Bools | None = None

    @property
    def refusals(self) -> Bools:
        """Of the failed ones, those that were refused; none where nobody said."""
        return np.zeros_like(self.failed) if self.refused is None else self.refused


def columns_of(
    outcomes: Iterable[Outcome], rollout: str, strata: Strata, shadowing: bool
) -> Columns:
    """Of this rollout and of the two arms that are compared now; what is malformed is left out."""
    wanted = [one for one in outcomes if _is_wanted(one, rollout, shadowing)]
    strata.learn(one.tier for one in wanted)
    indexes = strata.indexes()
    rows: list[_Row] = []
    cancelled, compared, matches = [0, 0], 0, 0
    for one in wanted:
        canary = one.arm != "stable"
        if isinstance(one.match, bool):
            compared += 1
            matches += one.match
        if one.cancelled:
            cancelled[canary] += 1
            continue
        index = indexes.get((one.tier, one.label))
        if index is None:
            index = strata.index_of(one.tier, one.label)
        rows.append(_row(one, canary, index))
    return _columns(rows, (cancelled[0], cancelled[1]), compared, matches)


def conversation_key(conversation: str) -> int:
    """Never 0 for a conversation; one in four billion is taken for another."""
    return (crc32(conversation.encode("utf-8", "replace")) or 1) if conversation else 0


def _is_wanted(one: Outcome, rollout: str, shadowing: bool) -> bool:
    if not isinstance(one, Outcome) or one.rollout != rollout:
        return False
    if one.arm == "stable":
        wanted = not shadowing or bool(one.pair)
    else:
        wanted = one.arm == ("shadow" if shadowing else "canary")
    return wanted and _is_valid(one)


def _is_valid(one: Outcome) -> bool:
    texts = (one.tier, one.label, one.conversation)
    return (
        all(isinstance(text, str) for text in texts)
        and isinstance(one.failed, bool)
        and isinstance(one.cancelled, bool)
        and isinstance(one.refused, bool)
        and _is_number(one.output_tokens)
        and (one.ttft_s is None or _is_number(one.ttft_s))
        and (one.e2e_s is None or _is_number(one.e2e_s))
    )


def _is_number(value: object) -> bool:
    """Not negative, and small enough to be one; compared before it is converted, for an integer
    may be larger than any float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST


def _row(one: Outcome, canary: bool, stratum: int) -> _Row:
    failed = one.failed or one.refused
    answered = not failed and one.e2e_s is not None
    return (
        canary,
        stratum,
        failed,
        conversation_key(one.conversation),
        math.nan if one.ttft_s is None else one.ttft_s,
        one.e2e_s if answered and one.e2e_s is not None else math.nan,
        math.log1p(one.output_tokens) if answered else math.nan,
        one.refused and not one.failed,
    )


def _columns(rows: list[_Row], cancelled: tuple[int, int], compared: int, matches: int) -> Columns:
    canary, stratum, failed, conversation, ttft, e2e, tokens, refused = (
        zip(*rows, strict=True) if rows else ((),) * 8
    )
    return Columns(
        canary=np.array(canary, dtype=np.bool_),
        stratum=np.array(stratum, dtype=np.int64),
        failed=np.array(failed, dtype=np.bool_),
        conversation=np.array(conversation, dtype=np.int64),
        ttft=position(np.array(ttft, dtype=np.float64)),
        e2e=position(np.array(e2e, dtype=np.float64)),
        log_tokens=np.array(tokens, dtype=np.float64),
        cancelled=cancelled,
        compared=compared,
        matches=matches,
        refused=np.array(refused, dtype=np.bool_),
    )
