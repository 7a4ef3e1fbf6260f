"""The last failure of each app: kept for an hour, or until a later replica is ready."""

from __future__ import annotations

from dataclasses import replace

from modelyard.lifecycle.failures import KEPT_S, Failures
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport

FAILED = ReplicaReport("gen@1", "r-1", "node", 41, Phase.FAILED, 0.0, cause="SelfTest: no")
READY = replace(FAILED, replica="r-2", phase=Phase.READY, phase_s=1.0, cause=None)


def test_a_failure_is_kept_for_an_hour() -> None:
    failures = Failures()
    failures.heard(FAILED, 100.0)
    assert failures.last(100.0 + KEPT_S - 1) == (Post(FAILED, KEPT_S - 1),)
    assert failures.last(100.0 + KEPT_S) == ()


def test_the_last_of_each_app_is_kept() -> None:
    failures = Failures()
    later = replace(FAILED, replica="r-3", cause="Loading: no")
    other = replace(FAILED, app="emb@1")
    for at, report in enumerate((FAILED, other, later)):
        failures.heard(report, float(at))
    assert failures.last(2.0) == (Post(later, 0.0), Post(other, 1.0))


def test_a_replica_that_became_ready_since_ends_it_and_an_older_one_does_not() -> None:
    failures = Failures()
    failures.heard(FAILED, 100.0)
    failures.heard(replace(READY, phase_s=60.0), 110.0)
    failures.heard(replace(READY, app="emb@1"), 110.0)
    failures.heard(replace(READY, phase=Phase.WARMING), 110.0)
    assert failures.last(110.0) == (Post(FAILED, 10.0),)
    failures.heard(READY, 120.0)
    assert failures.last(120.0) == ()
