"""What the three probes of a replica look at, and what they do not."""

from dataclasses import replace

import pytest

from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.probes import ProbeCounts, Probes
from modelyard.testing.in_memory import post

READY = post("gen@1").report


@pytest.mark.parametrize("phase", [Phase.FETCHING, Phase.LOADING, Phase.WARMING, Phase.SELF_TEST])
def test_while_it_starts_it_is_alive_and_nothing_else(phase: Phase) -> None:
    assert Probes.of(replace(READY, phase=phase)) == Probes(False, False, True)


def test_ready_is_all_three() -> None:
    assert Probes.of(READY) == Probes(True, True, True)


LEAVES = replace(READY, phases=((Phase.LOADING, 1.0), (Phase.READY, 9.0)))


def test_what_drains_has_started_and_is_not_ready() -> None:
    assert Probes.of(replace(LEAVES, phase=Phase.DRAINING)) == Probes(True, False, True)


@pytest.mark.parametrize("cause", [Cause.STALLED, Cause.CRASHED, Cause.DEVICE_FAULT, None])
def test_what_failed_does_not_live(cause: Cause | None) -> None:
    failed = replace(LEAVES, phase=Phase.FAILED, cause_kind=cause)
    assert Probes.of(failed) == Probes(True, False, False)


def test_a_replica_without_progress_is_not_ready_either() -> None:
    assert Probes.of(replace(READY, live=False)) == Probes(True, False, False)


def test_overload_fails_none() -> None:
    full = replace(READY, ongoing=10_000, slots=1)
    assert Probes.of(full) == Probes(True, True, True)


def test_a_version_counts_its_replicas() -> None:
    loading = replace(READY, phase=Phase.LOADING)
    assert ProbeCounts.of([READY, loading]) == ProbeCounts(2, 1, 1, 2)
    assert ProbeCounts.of([]) == ProbeCounts()
