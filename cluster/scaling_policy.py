"""The Serve autoscaling policy: a shim around the pure rule.

Serve pickles a policy's module by value, so this one imports what it needs inside `__call__` and
holds no state: the real modules are then the controller's own, not a stale copy of ours. (They stay
as they are until the controller restarts: new code needs `modelyard down` and `up`.)
"""

from typing import Any


class QueuedPlusOngoing:
    """Named in every autoscaling_config as `cluster.scaling_policy:QueuedPlusOngoing`.

    Ray's total already counts requests queued at handles plus those running at replicas; the board
    adds those that wait at the ingresses. Each cell of a version asks for itself and gets its part
    of what all need. Serve then applies its delays to each cell by itself, and does not ask for one
    of 0 replicas whose handles hold requests: that gets 1 at once. No policy_kwargs: a change of
    them restarts the app.
    """

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        from cluster.signals import signals
        from modelyard.scaling.deal import CellLoad

        decision = signals().decide(
            CellLoad(
                app=context.app_name,
                ongoing=context.total_num_requests,
                target_ongoing_requests=context.config.target_ongoing_requests,
                target=context.target_num_replicas,
                min_replicas=context.capacity_adjusted_min_replicas,
                max_replicas=context.capacity_adjusted_max_replicas,
            )
        )
        return decision.replicas, {}
