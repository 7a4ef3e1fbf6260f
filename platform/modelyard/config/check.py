"""`modelyard check`: everything that is wrong with a file, before `serve deploy` acts on it.

Serve ignores unknown keys, replaces option dicts whole and deletes unlisted apps; none of that is
an error to it. Rules are pure but for reading manifests, and know nothing of a running cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from modelyard.config.check_fleet import check_fleet
from modelyard.config.checked import Checked, parse, take_apart
from modelyard.config.document import Document
from modelyard.config.explain import did_you_mean
from modelyard.config.faults import Fault, Severity
from modelyard.config.fleet import FLEET_SCHEMA
from modelyard.config.fleet_memory import Artifacts
from modelyard.config.rules import (
    artifacts,
    bundles,
    control,
    engine,
    environment,
    names,
    overload,
    rollouts,
    routes,
    safety,
    scaling,
    swap,
)
from modelyard.config.table import SCHEMA, Table

Rule = Callable[[Checked], Iterator[Fault]]

RULES: Final[tuple[Rule, ...]] = (
    names.import_paths_are_ours,
    names.app_names_are_unique,
    names.there_is_one_ingress,
    names.only_the_ingress_has_a_route,
    names.deployments_are_the_expected,
    names.ingress_has_a_table,
    names.apps_are_named_after_artifacts,
    routes.aliases_lead_to_apps,
    routes.arms_are_of_one_kind,
    routes.dedicated_cells_are_there,
    routes.models_are_used,
    rollouts.rollout_ids_are_unique,
    rollouts.somebody_meets_the_canary,
    rollouts.something_is_compared,
    rollouts.steps_can_be_judged,
    rollouts.quality_can_be_decided,
    rollouts.judges_are_other_generators,
    rollouts.judge_has_something_to_read,
    swap.swapped_models_are_apps,
    swap.swapped_models_can_be_unloaded,
    swap.swapped_models_are_in_one_area,
    swap.swapped_models_have_no_rollout,
    control.there_is_one_control,
    control.control_has_one_replica,
    control.control_has_the_ingress_table,
    control.control_state_is_kept,
    scaling.policy_is_kept,
    scaling.replicas_are_set_once,
    scaling.zero_replicas_are_meant,
    scaling.metrics_come_each_second,
    scaling.scaling_is_prompt,
    scaling.replica_bounds_are_in_order,
    scaling.limit_is_given,
    scaling.target_is_below_the_limit,
    overload.queue_holds_a_request,
    overload.output_can_be_capped,
    overload.queue_order_is_of_use,
    overload.tiers_are_of_tenants,
    safety.drain_outlasts_answers,
    safety.proxy_outlasts_answers,
    safety.host_is_given,
    safety.port_is_free_of_ray,
    safety.demo_keys_stay_at_home,
    environment.environment_is_the_shells,
    engine.generators_have_no_user_config,
    engine.tensor_parallel_has_gpus,
    bundles.a_replica_is_one_bundle,
    bundles.actors_fit_their_bundle,
    bundles.bundles_are_not_counted_by_node,
    bundles.selectors_are_of_bundles,
    safety.a_good_replica_outlasts_a_bad_one,
    safety.drain_fits_the_measured_speed,
    artifacts.artifacts_fit,
    artifacts.accelerators_are_given,
)


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. digest: of the table, None when that is missing or at fault."""

    faults: tuple[Fault, ...]
    apps: int = 0
    routes: int = 0
    digest: str | None = None

    @property
    def ok(self) -> bool:
        return not any(fault.severity is Severity.ERROR for fault in self.faults)


def check_document(document: Document, resolve: Callable[[str], Path]) -> Report:
    """Check a Serve config, a table or a fleet spec, whichever the file is. Faults in its order.

    Of a fleet spec only what it says by itself: what follows from it takes the planner, which the
    core does not import (`modelyard.cli.plan_check`).
    resolve: from an artifact's address to its folder on this machine.
    """
    schema = document.root.get("schema")
    if "applications" in document.root or schema is None:
        return _check_serve(document, resolve)
    if schema == SCHEMA:
        table, faults = parse(document, Table, document.root, ())
        return _report(faults, 0, table)
    if schema == FLEET_SCHEMA:
        found = check_fleet(document, Artifacts(resolve))
        routes = len(found.checked.spec.routes) if found.checked is not None else 0
        return Report(found.faults, 0, routes)
    near = did_you_mean(str(schema), (SCHEMA, FLEET_SCHEMA))
    message = f"unknown schema: {near or f'write {SCHEMA}, or give a Serve config'}"
    return Report((document.fault(("schema",), message),))


def _check_serve(document: Document, resolve: Callable[[str], Path]) -> Report:
    checked, faults = take_apart(document, resolve)
    if checked is None:
        return _report(faults, 0, None)
    for rule in RULES:
        faults += rule(checked)
    return _report(faults, len(checked.apps), checked.table)


def _report(faults: list[Fault], apps: int, table: Table | None) -> Report:
    ordered = tuple(sorted(faults, key=lambda fault: fault.line or 0))
    if table is None:
        return Report(ordered, apps)
    return Report(ordered, apps, len(table.routes), table.digest())
