"""The e-process on whose events they are: exact on small cases."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.rollout.columns import Columns
from modelyard.rollout.event_share import RATE_PRIOR, RATES, log_share
from modelyard.rollout.events import Events, events_of
from modelyard.rollout.exposure import Exposure
from modelyard.rollout.mixture import Mixture
from modelyard.rollout.seen import SeenInWindow
from modelyard.rollout.strata import Strata

NOTHING = float("nan")


def columns(
    rows: list[tuple[bool, bool]], stratum: int = 0, conversations: list[int] | None = None
) -> Columns:
    """rows: of the canary, failed."""
    n = len(rows)
    return Columns(
        canary=np.array([canary for canary, _ in rows], dtype=np.bool_),
        stratum=np.full(n, stratum, dtype=np.int64),
        failed=np.array([failed for _, failed in rows], dtype=np.bool_),
        conversation=np.array(conversations or [0] * n, dtype=np.int64),
        ttft=np.full(n, NOTHING),
        e2e=np.full(n, NOTHING),
        log_tokens=np.full(n, NOTHING),
    )


def failures_of(batch: Columns, seen: SeenInWindow) -> Events:
    return events_of(batch, batch.failed, np.ones_like(batch.failed), seen, Strata(()))


def evidence_of(batches: list[Columns], weight: float, restart_at: int) -> float:
    """The sum over slices and windows, of which the gate looks at the largest."""
    strata, seen = Strata(()), SeenInWindow()
    mixture, exposure = Mixture(strata.prior, RATE_PRIOR), Exposure(strata.count)
    exposure.begin(weight, 0.0)
    mixture.begin_window(0.0)
    for number, batch in enumerate(batches):
        if number == restart_at:
            mixture.begin_window(0.0)
        events = failures_of(batch, seen)
        mixture.add(strata.members @ log_share(events, exposure.share(1000.0), RATES))
        exposure.take(batch)
    return float(np.exp(mixture.weighted()).sum())


@given(
    failed=st.lists(st.booleans(), min_size=7, max_size=7),
    strata=st.lists(st.integers(0, 1), min_size=7, max_size=7),
    conversations=st.lists(st.integers(0, 4), min_size=7, max_size=7),
    weight=st.floats(0.02, 0.98),
    restart_at=st.integers(1, 3),
)
@settings(max_examples=25, deadline=None)
def test_no_expected_evidence_grows_against_an_equal_canary(
    failed: list[bool],
    strata: list[int],
    conversations: list[int],
    weight: float,
    restart_at: int,
) -> None:
    """All assignments of conversations to arms, each with its chance: the mean is at most 1.

    Whatever fails, fails on either arm, as an equal canary's would; batches are of two requests.
    """
    # A request of conversation 0 stands for itself: it is a unit of its own.
    units = [key or 10 + row for row, key in enumerate(conversations)]
    names = sorted(set(units))
    mean = 0.0
    for arms in product((False, True), repeat=len(names)):
        arm = dict(zip(names, arms, strict=True))
        batches = [
            columns(
                [(arm[units[row]], failed[row]) for row in rows],
                strata[rows[0]],
                [conversations[row] for row in rows],
            )
            for rows in ([0, 1], [2, 3], [4, 5], [6])
        ]
        chance = math.prod(weight if one else 1 - weight for one in arms)
        mean += chance * evidence_of(batches, weight, restart_at)
    assert mean <= 1 + 1e-9


@given(
    rows=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30),
    which=st.integers(0, 29),
    weight=st.floats(0.01, 0.99),
)
@settings(max_examples=100, deadline=None)
def test_one_more_failure_of_the_canary_never_lowers_the_evidence(
    rows: list[tuple[bool, bool]], which: int, weight: float
) -> None:
    worse = list(rows)
    worse[which % len(rows)] = (worse[which % len(rows)][0], True)
    if not worse[which % len(rows)][0]:
        worse = [(canary, failed or canary) for canary, failed in rows]
    batches = [[columns([row]) for row in each] for each in (rows, worse)]
    before, after = (evidence_of(each, weight, restart_at=1) for each in batches)
    assert after >= before - 1e-9


def test_at_full_weight_no_event_says_anything() -> None:
    batches = [columns([(True, True)] * 50)]
    assert evidence_of(batches, 1.0, restart_at=9) == pytest.approx(0.6)  # the window's weight


def test_an_incident_on_both_arms_is_no_evidence_however_large() -> None:
    """Events in proportion to the weight, a hundred thousand of them."""
    asked = np.array([1e6])
    events = Events(np.array([95_000.0]), np.array([5_000.0]), asked, asked)
    assert (log_share(events, np.array([0.05]), np.array([1.25, 2.0, 5.0])) < 0).all()


def test_a_conversation_counts_once() -> None:
    seen = SeenInWindow()
    batch = columns([(True, True)] * 5, conversations=[7, 7, 7, 8, 0])
    assert failures_of(batch, seen).canary.sum() == 3
    assert failures_of(batch, seen).canary.sum() == 1  # that of none
    seen.begin_window()
    assert failures_of(batch, seen).canary.sum() == 3


def test_a_conversation_that_failed_is_at_risk_no_longer() -> None:
    seen = SeenInWindow()
    first = columns([(True, True), (True, False), (True, False)], conversations=[7, 7, 8])
    then = columns([(True, False), (True, False), (False, False)], conversations=[7, 8, 0])
    assert failures_of(first, seen).canary_at_risk.sum() == 3
    assert failures_of(then, seen).canary_at_risk.sum() == 1
    assert failures_of(then, seen).control_at_risk.sum() == 1


def test_a_conversation_that_fails_on_both_arms_counts_for_the_control_arm() -> None:
    batch = columns([(True, True), (False, True)], conversations=[7, 7])
    events = failures_of(batch, SeenInWindow())
    assert (events.control.sum(), events.canary.sum()) == (1, 0)
