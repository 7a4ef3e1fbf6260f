"""Rules about placement groups: what Serve would refuse, and what would wait for ever."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.config.checked import Checked
from modelyard.config.faults import Fault
from modelyard.config.serve_file import ActorOptions


def a_replica_is_one_bundle(checked: Checked) -> Iterator[Fault]:
    """Its process lives in the first, and sees no device of another."""
    for app in checked.apps:
        for path, deployment in app.deployments():
            if len(deployment.placement_group_bundles) > 1:
                yield checked.fault(
                    (*path, "placement_group_bundles", 1),
                    "a replica is one process and sees the devices of its first bundle alone: "
                    "write one bundle, with all of them",
                )


def actors_fit_their_bundle(checked: Checked) -> Iterator[Fault]:
    for app in checked.apps:
        for path, deployment in app.deployments():
            if not deployment.placement_group_bundles:
                continue
            bundle = deployment.placement_group_bundles[0]
            for name, amount in _asked(deployment.ray_actor_options).items():
                if amount > bundle.get(name, 0.0) + 1e-6:
                    yield checked.fault(
                        (*path, "placement_group_bundles", 0),
                        f"has {bundle.get(name, 0.0):g} {name}, and ray_actor_options ask for "
                        f"{amount:g}: write that here too",
                    )


def bundles_are_not_counted_by_node(checked: Checked) -> Iterator[Fault]:
    for app in checked.apps:
        for path, deployment in app.deployments():
            given = deployment.model_fields_set
            if deployment.placement_group_bundles and "max_replicas_per_node" in given:
                yield checked.fault(
                    (*path, "max_replicas_per_node"),
                    "Serve refuses it together with placement_group_bundles: remove it, and let "
                    "`modelyard plan` spread the replicas",
                )


def selectors_are_of_bundles(checked: Checked) -> Iterator[Fault]:
    """Serve would refuse them otherwise, without a line."""
    for app in checked.apps:
        for path, deployment in app.deployments():
            selectors = len(deployment.placement_group_bundle_label_selector)
            bundles = len(deployment.placement_group_bundles)
            if selectors and selectors != bundles:
                yield checked.fault(
                    (*path, "placement_group_bundle_label_selector"),
                    f"has {selectors} entries for {bundles} placement_group_bundles: write one for "
                    "each bundle",
                )


def _asked(options: ActorOptions) -> dict[str, float]:
    own = {"CPU": options.num_cpus, "GPU": options.num_gpus, "memory": options.memory}
    asked = own | dict(options.resources)
    return {name: float(amount) for name, amount in asked.items() if amount is not None}
