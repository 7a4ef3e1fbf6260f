"""The autoscaling policy, with the part of Ray's context that it reads."""

from __future__ import annotations

import ast
import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from cluster import scaling_policy
from cluster.scaling_policy import QueuedPlusOngoing


def context(*, total: float, queued: float | None, target: float = 17) -> Any:
    """In Ray, total_num_requests already holds the queued ones."""
    return SimpleNamespace(
        total_num_requests=total,
        total_queued_requests=queued,
        config=SimpleNamespace(target_ongoing_requests=target),
    )


def test_the_queue_is_counted_beside_what_runs() -> None:
    # The seeds' example: five replicas of 24 are full and 60 requests wait. What runs, alone, asks
    # for 8 replicas; what is there asks for 11.
    assert QueuedPlusOngoing()(context(total=120, queued=0)) == (8, {})
    assert QueuedPlusOngoing()(context(total=180, queued=60)) == (11, {})


def test_the_queue_is_not_counted_twice() -> None:
    assert QueuedPlusOngoing()(context(total=34, queued=34)) == (2, {})
    assert QueuedPlusOngoing()(context(total=34, queued=0)) == (2, {})


def test_before_the_first_metrics_nothing_is_queued() -> None:
    assert QueuedPlusOngoing()(context(total=18, queued=None)) == (2, {})


def test_an_idle_model_needs_no_replica() -> None:
    assert QueuedPlusOngoing()(context(total=0, queued=0)) == (0, {})


def test_more_queued_than_total_is_a_late_metric_and_never_a_negative_load() -> None:
    assert QueuedPlusOngoing()(context(total=0, queued=20)) == (2, {})


def test_a_target_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        QueuedPlusOngoing()(context(total=1, queued=0, target=0))


def test_the_module_imports_nothing_of_ours_at_its_top() -> None:
    # Serve pickles it by value: what it named at its top would be a stale copy in the controller.
    tops = ast.parse(inspect.getsource(scaling_policy)).body
    imports = [node for node in tops if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["from typing import Any"]
