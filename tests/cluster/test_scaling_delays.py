"""Serve's own delays around the policy, cell by cell: its code as pinned, without a cluster."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ray.serve._private.common import DeploymentID
from ray.serve.autoscaling_policy import _apply_autoscaling_config
from ray.serve.config import AutoscalingConfig, AutoscalingContext

from cluster import signals as module
from cluster.scaling_policy import QueuedPlusOngoing
from cluster.signals import Signals
from modelyard.control.ingress_post import IngressPost, Wish
from modelyard.control.published import Override, Published
from modelyard.control.reading import Decided, IngressEntry, Reading

GEN, B = "gen@1.0.0", "gen@1.0.0--b"
UP_S, DOWN_S, TO_ZERO_S = 5.0, 20.0, 60.0


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


class Told:
    """A board whose reading the test sets."""

    def __init__(self) -> None:
        self.waiting = 0
        self.wishes: tuple[Wish, ...] = ()
        self.overrides: tuple[Override, ...] = ()

    def read_all_blocking(self, timeout_s: float) -> Reading:
        post = IngressPost("i-1", "digest", True, waiting=((GEN, "interactive", self.waiting),))
        word = Published(1, 1, overrides=self.overrides)
        return Reading((), (IngressEntry(post, 0.1),), self.wishes, word, 0.1, 600.0)

    def decided(self, decisions: tuple[Decided, ...]) -> None:
        pass


class Quiet(Signals):
    def keep_reading(self) -> None:
        pass


class Serve:
    """Cells whose targets follow Serve's wrapped policy ten times a second."""

    def __init__(self, clock: Clock, board: Told, signals: Signals, *cells: str) -> None:
        self._clock, self._signals = clock, signals
        self.board = board
        self.targets = dict.fromkeys(cells, 0)
        self._states: dict[str, dict[str, Any]] = {app: {} for app in cells}
        self._policies = {app: _apply_autoscaling_config(QueuedPlusOngoing()) for app in cells}
        self._config = AutoscalingConfig(
            min_replicas=0,
            max_replicas=2,
            target_ongoing_requests=10,
            upscale_delay_s=UP_S,
            downscale_delay_s=DOWN_S,
            downscale_to_zero_delay_s=TO_ZERO_S,
        )

    def run(self, seconds: float) -> dict[str, int]:
        for tick in range(round(seconds * 10)):
            self._clock.at += 0.1
            if tick % 5 == 0:
                self._signals.turn()
            for app, policy in self._policies.items():
                number, self._states[app] = policy(self._context(app))
                self.targets[app] = max(0, min(2, number))
        return dict(self.targets)

    def _context(self, app: str) -> AutoscalingContext:
        return AutoscalingContext(
            deployment_id=DeploymentID("Generator", app),
            deployment_name="Generator",
            app_name=app,
            current_num_replicas=self.targets[app],
            target_num_replicas=self.targets[app],
            running_replicas=[],
            total_num_requests=0.0,
            total_queued_requests=0.0,
            aggregated_metrics=None,
            raw_metrics=None,
            capacity_adjusted_min_replicas=0,
            capacity_adjusted_max_replicas=2,
            policy_state=self._states[app],
            last_scale_up_time=None,
            last_scale_down_time=None,
            current_time=self._clock.at,
            config=self._config,
        )


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    clock, board = Clock(), Told()
    monkeypatch.setattr(time, "time", clock)  # Serve's delays
    signals = Quiet(lambda: board, clock)
    monkeypatch.setattr(module, "_signals", signals)
    return Serve(clock, board, signals, GEN, B)


def test_a_cell_without_replicas_starts_at_once_and_further_ones_after_the_delay(
    serve: Serve,
) -> None:
    serve.board.waiting = 35
    assert serve.run(1) == {GEN: 2, B: 2}
    serve.board.waiting = 0
    assert serve.run(DOWN_S - 1) == {GEN: 2, B: 2}
    assert serve.run(2) == {GEN: 1, B: 1}  # Serve goes to 0 only from 1
    assert serve.run(TO_ZERO_S) == {GEN: 0, B: 0}
    serve.board.waiting = 5
    assert serve.run(1) == {GEN: 1, B: 0}
    serve.board.waiting = 15
    assert serve.run(UP_S - 1) == {GEN: 1, B: 0}
    assert serve.run(2) == {GEN: 2, B: 0}


def test_a_wish_and_its_end_take_one_cell_from_0_to_1_and_back(serve: Serve) -> None:
    serve.board.wishes = (Wish(GEN, 1, 60.0),)
    assert serve.run(1) == {GEN: 1, B: 0}
    serve.board.wishes = ()
    assert serve.run(TO_ZERO_S - 1) == {GEN: 1, B: 0}
    assert serve.run(2) == {GEN: 0, B: 0}


def test_a_drained_cell_hands_over_and_then_ends(serve: Serve) -> None:
    serve.board.waiting = 15
    assert serve.run(1) == {GEN: 2, B: 0}
    serve.board.overrides = (Override("drain", GEN, None, "ops-1", "a move", 600.0),)
    assert serve.run(1) == {GEN: 2, B: 2}
    assert serve.run(DOWN_S + TO_ZERO_S + 1) == {GEN: 0, B: 2}
