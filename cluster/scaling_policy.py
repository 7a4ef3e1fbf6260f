"""The Serve autoscaling policy: a shim around the pure rule.

Serve pickles a policy's module by value, so this one imports what it needs inside `__call__` and
holds no state: the real modules are then the controller's own, not a stale copy of ours. (They stay
as they are until the controller restarts: new code needs `modelyard down` and `up`.)
"""

from typing import Any


class QueuedPlusOngoing:
    """Named in every autoscaling_config as `cluster.scaling_policy:QueuedPlusOngoing`.

    Ray's total already counts requests queued at handles plus those running at replicas; the board
    adds those that wait at the ingresses. No policy_kwargs: a change of them restarts the app.
    """

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        from cluster.signals import signals
        from modelyard.scaling.queued_plus_ongoing import Signal, bounded, desired

        known = signals()
        board = known.signal_for(context.app_name)
        signal = Signal(
            ongoing=context.total_num_requests,
            target_ongoing_requests=context.config.target_ongoing_requests,
            target=context.target_num_replicas,
            version=board.version,
            board_age_s=board.board_age_s,
            board_up_s=board.board_up_s,
        )
        decision = bounded(
            desired(signal),
            context.capacity_adjusted_min_replicas,
            context.capacity_adjusted_max_replicas,
        )
        known.decided(context.app_name, decision)
        return decision.replicas, {}
