"""The Serve autoscaling policy: a shim around the pure rule.

Serve pickles a policy's module by value, so this one imports what it needs inside `__call__` and
holds no state: the real modules are then the controller's own, not a stale copy of ours.
"""

from typing import Any


class QueuedPlusOngoing:
    """Named in every autoscaling_config as `cluster.scaling_policy:QueuedPlusOngoing`.

    Ray's total already counts requests queued at handles plus those running at replicas.
    """

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        from modelyard.scaling.queued_plus_ongoing import desired_replicas

        queued = context.total_queued_requests or 0.0
        ongoing = max(context.total_num_requests - queued, 0.0)
        return desired_replicas(queued, ongoing, context.config.target_ongoing_requests), {}
