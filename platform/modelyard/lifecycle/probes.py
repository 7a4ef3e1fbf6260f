"""The three probes, of one replica and of all the replicas of a version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import ReplicaReport


@dataclass(frozen=True, slots=True)
class Probes:
    """startup: it was ever ready. readiness: it may be sent requests. liveness: its process and
    engine make progress: not when it has failed. How loaded it is has no part in any of them."""

    startup: bool
    readiness: bool
    liveness: bool

    @classmethod
    def of(cls, report: ReplicaReport) -> Probes:
        live = report.live and report.phase is not Phase.FAILED
        return cls(report.started, report.ready, live)


@dataclass(frozen=True, slots=True)
class ProbeCounts:
    """How many replicas there are, and how many pass each probe."""

    replicas: int = 0
    started: int = 0
    ready: int = 0
    live: int = 0

    @classmethod
    def of(cls, reports: Iterable[ReplicaReport]) -> ProbeCounts:
        probes = [Probes.of(report) for report in reports]
        return cls(
            len(probes),
            sum(one.startup for one in probes),
            sum(one.readiness for one in probes),
            sum(one.liveness for one in probes),
        )
