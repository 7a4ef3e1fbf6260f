"""What happened to a batch of requests, and to whom it could have happened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelyard.rollout.columns import Bools, Columns, Floats
from modelyard.rollout.seen import SeenInWindow
from modelyard.rollout.strata import Strata


@dataclass(frozen=True, slots=True)
class Events:
    """By stratum. control and canary: the first of a conversation in the window. Beside them, at
    risk: requests of conversations that had no event before, with those that have it now.
    """

    control: Floats
    canary: Floats
    control_at_risk: Floats
    canary_at_risk: Floats


def events_of(
    columns: Columns, happened: Bools, among: Bools, seen: SeenInWindow, strata: Strata
) -> Events:
    """happened: to which rows; among: to which it could. `seen` learns the conversations.

    A conversation with events on both arms in one batch counts for the control arm, and rows are
    put in an order of their own: that in which they came decides nothing.
    """
    fresh = among & ~seen.has(columns.conversation)
    rows = np.flatnonzero(happened & fresh)
    if columns.conversation[rows].any():
        keys = (columns.stratum[rows], columns.canary[rows], columns.conversation[rows])
        rows = rows[np.lexsort(keys)]
        rows = rows[seen.first(columns.conversation[rows])]
    first = np.zeros(len(fresh), dtype=np.bool_)
    first[rows] = True
    at_risk = first | (fresh & ~happened)
    return Events(
        *(
            np.bincount(columns.stratum[which & arm], minlength=strata.count).astype(np.float64)
            for which in (first, at_risk)
            for arm in (~columns.canary, columns.canary)
        )
    )
