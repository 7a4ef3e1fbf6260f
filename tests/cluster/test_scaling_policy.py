"""The autoscaling policy, with the part of Ray's context that it reads."""

from __future__ import annotations

import ast
import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from cluster import scaling_policy
from cluster import signals as module
from cluster.scaling_policy import QueuedPlusOngoing
from cluster.signals import AppSignal, Signals
from modelyard.scaling.queued_plus_ongoing import Decision
from modelyard.scaling.version_signal import Bound, VersionSignal

APP = "gen@1.0.0"


class KnownSignals(Signals):
    """Signals without a thread: what the board says, and what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.known = AppSignal(VersionSignal(), 0.2, 600.0)
        self.told: dict[str, Decision] = {}

    def keep_reading(self) -> None:
        pass

    def signal_for(self, app: str) -> AppSignal:
        assert app == APP
        return self.known

    def decided(self, app: str, decision: Decision) -> None:
        self.told[app] = decision


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> KnownSignals:
    known = KnownSignals()
    monkeypatch.setattr(module, "_signals", known)
    return known


def context(*, total: float = 0, each: float = 17, target: int = 1, least: int = 0) -> Any:
    """The part of Ray's context that is read. Its total holds the queued and the ongoing."""
    return SimpleNamespace(
        app_name=APP,
        total_num_requests=total,
        target_num_replicas=target,
        capacity_adjusted_min_replicas=least,
        capacity_adjusted_max_replicas=20,
        config=SimpleNamespace(target_ongoing_requests=each),
    )


def test_what_waits_at_the_ingresses_is_counted_beside_rays_total(signals: KnownSignals) -> None:
    assert QueuedPlusOngoing()(context(total=120)) == (8, {})
    signals.known = AppSignal(VersionSignal(waiting=60), 0.2, 600.0)
    assert QueuedPlusOngoing()(context(total=120)) == (11, {})


def test_an_idle_model_needs_no_replica(signals: KnownSignals) -> None:
    assert QueuedPlusOngoing()(context()) == (0, {})


def test_a_wish_brings_one_back_from_zero(signals: KnownSignals) -> None:
    signals.known = AppSignal(VersionSignal(wish=Bound(1, "", 30.0)), 0.2, 600.0)
    assert QueuedPlusOngoing()(context(target=0)) == (1, {})


@pytest.mark.parametrize(("age_s", "up_s"), [(None, 0.0), (10.0, 600.0), (0.2, 0.5)])
def test_a_silent_or_young_board_keeps_the_target(
    signals: KnownSignals, age_s: float | None, up_s: float
) -> None:
    signals.known = AppSignal(VersionSignal(), age_s, up_s)
    assert QueuedPlusOngoing()(context(target=4)) == (4, {})


def test_the_board_is_told_what_comes_of_it(signals: KnownSignals) -> None:
    QueuedPlusOngoing()(context(least=1))
    assert signals.told == {APP: Decision(1, "idle, at least min_replicas 1")}


def test_the_module_imports_nothing_of_ours_at_its_top() -> None:
    # Serve pickles it by value: what it named at its top would be a stale copy in the controller.
    tops = ast.parse(inspect.getsource(scaling_policy)).body
    imports = [node for node in tops if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["from typing import Any"]
