"""The autoscaling policy, with the part of Ray's context that it reads."""

from __future__ import annotations

import ast
import inspect
from types import SimpleNamespace

import pytest

from cluster import scaling_policy
from cluster import signals as module
from cluster.scaling_policy import QueuedPlusOngoing
from cluster.signals import Signals
from modelyard.scaling.deal import CellLoad
from modelyard.scaling.queued_plus_ongoing import Decision

APP = "gen@1.0.0--b"


class KnownSignals(Signals):
    """Signals without a thread, which say what they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[CellLoad] = []

    def keep_reading(self) -> None:
        pass

    def decide(self, cell: CellLoad) -> Decision:
        self.asked.append(cell)
        return Decision(3, "load")


def test_a_cell_hands_on_what_serve_told_it_and_returns_its_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = KnownSignals()
    monkeypatch.setattr(module, "_signals", known)
    context = SimpleNamespace(
        app_name=APP,
        total_num_requests=120.5,
        target_num_replicas=2,
        capacity_adjusted_min_replicas=1,
        capacity_adjusted_max_replicas=4,
        config=SimpleNamespace(target_ongoing_requests=17),
    )
    assert QueuedPlusOngoing()(context) == (3, {})
    assert known.asked == [CellLoad(APP, 120.5, 17, 2, 1, 4)]


def test_the_module_imports_nothing_of_ours_at_its_top() -> None:
    # Serve pickles it by value: what it named at its top would be a stale copy in the controller.
    tops = ast.parse(inspect.getsource(scaling_policy)).body
    imports = [node for node in tops if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["from typing import Any"]
