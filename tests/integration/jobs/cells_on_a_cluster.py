"""Cells of a rendered config on a Ray cluster with devices that are not there: what Ray makes of
them, read as `modelyard status` reads it. Prints one JSON object a reading.

A process of its own: a driver can join one cluster only.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["RAY_AUTH_MODE"] = "token"

import ray
from ray import serve
from ray.cluster_utils import Cluster
from ray.serve.context import _get_global_client
from ray.serve.schema import ServeDeploySchema

from cluster.board import NAMESPACE, Board
from cluster.observe import serve_applications
from deployments.replica import ServeReplica
from deployments.reporter import Reporter
from modelyard.lifecycle.phases import Phase
from placement.live import read_nodes
from placement.watched import Placement, read_placement

SHARED = {"gpu_mem": 24, "gpu_comp": 100}
WITHIN_S = 120.0


class Reports:
    """Tells the board what any model replica tells, and serves nothing."""

    def __init__(self) -> None:
        self._reporter = Reporter(ServeReplica(), Board(), lambda: 0)
        self._reporter.enter(Phase.READY)

    def check_health(self) -> None:
        self._reporter.post()


def app(args: dict[str, Any]) -> serve.Application:
    return serve.deployment(name="Generator")(Reports).bind()


def cell(name: str, place: str, replicas: int, bundle: dict[str, float]) -> dict[str, Any]:
    """As placement.cell_app renders one."""
    options: dict[str, Any] = {"num_cpus": bundle["CPU"]}
    options |= {"num_gpus": bundle["GPU"]} if "GPU" in bundle else {}
    options |= {"memory": bundle["memory"]} if "memory" in bundle else {}
    own = {key: bundle[key] for key in ("gpu_mem", "gpu_comp") if key in bundle}
    deployment = {
        "name": "Generator",
        "max_ongoing_requests": 4,
        "health_check_period_s": 1.0,
        "ray_actor_options": options | ({"resources": own} if own else {}),
        "placement_group_bundles": [bundle],
        "placement_group_strategy": "STRICT_PACK",
        "placement_group_bundle_label_selector": [{"modelyard/place": place}],
        "autoscaling_config": {
            "min_replicas": replicas,
            "max_replicas": replicas,
            "policy": {"policy_function": "cluster.scaling_policy:QueuedPlusOngoing"},
        },
    }
    return {
        "name": name,
        "route_prefix": None,
        "import_path": "cells_on_a_cluster:app",
        "args": {"artifact": "file:///m/gen/1.0.0", "start_budgets": {"scheduled_s": 6}},
        "deployments": [deployment],
    }


def of_device(gigabytes: int, percent: int) -> dict[str, float]:
    return {"CPU": 1, "GPU": percent / 100, "gpu_mem": gigabytes, "gpu_comp": percent}


CELLS = [
    cell("gen@1.0.0", "d0", 2, of_device(9, 40)),
    cell("gen@1.0.0--b", "d1", 1, of_device(9, 40)),
    cell("big@1.0.0", "box-0", 1, {"CPU": 1, "GPU": 2}),
    cell("emb@1.0.0", "cpu-0", 2, {"CPU": 0.5, "memory": 1_000_000_000}),
]
# 6 GB are free on d0 and 15 on d1: 18 in the sum, on neither. d7 is nowhere.
UNPLACEABLE = [
    cell("mid@1.0.0", "d1", 1, of_device(18, 20)),
    cell("lost@1.0.0", "d7", 1, of_device(1, 5)),
    cell("odd@1.0.0", "cpu-0", 1, {"CPU": 1, "gpu_mem": 1}),
]


def deploy(cells: list[dict[str, Any]]) -> None:
    client: Any = _get_global_client()
    client.deploy_apps(ServeDeploySchema.model_validate({"applications": cells}))


def reading(good: Callable[[Placement], bool]) -> Placement:
    """The first that is, or the last one within the time."""
    until = time.monotonic() + WITHIN_S
    while True:
        board = Board().read_all_blocking(10.0)
        found = read_placement(serve_applications(), board, time.time())
        assert found is not None
        if good(found) or time.monotonic() > until:
            return found
        time.sleep(0.5)


def show(found: Placement) -> None:
    board = Board().read_all_blocking(10.0)
    record = {
        "mismatches": sorted([one.app, one.kind] for one in found.mismatches),
        "pending": {one.app: [one.reason, one.alarm] for one in found.pending},
        "places": [found.planned, found.used],
        "reports": sorted([p.report.app, p.report.place, p.report.gpu_ids] for p in board.posts),
        "nodes": sorted(node.place for node in read_nodes() if node.alive),
    }
    print("READING " + json.dumps(record), flush=True)


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4})
    nodes = [
        cluster.add_node(
            num_cpus=4, num_gpus=1, resources=SHARED, labels={"modelyard/place": place}
        )
        for place in ("d0", "d1")
    ]
    cluster.add_node(num_cpus=4, num_gpus=2, labels={"modelyard/place": "box-0"})
    cluster.add_node(num_cpus=4, memory=4_000_000_000, labels={"modelyard/place": "cpu-0"})
    ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False)
    try:
        serve.start(proxy_location="Disabled")
        deploy(CELLS)
        show(reading(lambda found: found.fine))
        deploy([*CELLS, *UNPLACEABLE])
        show(reading(lambda found: sum(one.alarm for one in found.pending) == len(UNPLACEABLE)))
        deploy(CELLS)
        cluster.remove_node(nodes[1])
        show(reading(lambda found: any(one.alarm for one in found.pending)))
    finally:
        serve.shutdown()  # type: ignore[no-untyped-call]
        ray.shutdown()
        cluster.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
