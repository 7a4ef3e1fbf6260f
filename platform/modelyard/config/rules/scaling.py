"""Rules about replicas and how many requests each takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from modelyard.config.checked import App, Checked
from modelyard.config.faults import Fault, Severity, YamlPath
from modelyard.config.serve_file import Autoscaling, Deployment

POLICY: Final = "cluster.scaling_policy:QueuedPlusOngoing"
METRICS_INTERVAL_S: Final = 1.0
PROMPT_S: Final = {"look_back_period_s": 10.0, "upscale_delay_s": 5.0}


def policy_is_kept(checked: Checked) -> Iterator[Fault]:
    """Serve replaces the whole dict: one without a policy falls back to Serve's own."""
    for app in checked.apps:
        for path, deployment in app.deployments():
            config_path: YamlPath = (*path, "autoscaling_config")
            if deployment.autoscaling_config is None:
                if deployment.num_replicas == "auto":
                    yield checked.fault(
                        (*path, "num_replicas"),
                        "Serve's own policy sees no queue: write autoscaling_config with "
                        f'`policy: {{policy_function: "{POLICY}"}}`',
                    )
            elif deployment.autoscaling_config.policy.policy_function != POLICY:
                yield checked.fault(
                    (*config_path, "policy", "policy_function"),
                    "the policy is lost, because this dict replaces the code's whole: add "
                    f'`policy: {{policy_function: "{POLICY}"}}`',
                )


def replicas_are_set_once(checked: Checked) -> Iterator[Fault]:
    for path, _, deployment, _ in _autoscaled(checked):
        if isinstance(deployment.num_replicas, int):
            yield checked.fault(
                (*path, "num_replicas"),
                "set together with autoscaling_config: keep one of the two",
            )


def zero_replicas_are_meant(checked: Checked) -> Iterator[Fault]:
    """From zero an ingress wishes for a replica; nobody wishes for an ingress."""
    for path, app, _, scaling in _autoscaled(checked):
        config_path: YamlPath = (*path, "autoscaling_config")
        if scaling.min_replicas > 0:
            continue
        if not app.holds_model:
            yield checked.fault(
                (*config_path, "min_replicas"),
                "only a model can be brought back from zero: set at least 1",
            )
        elif scaling.downscale_to_zero_delay_s is None:
            yield checked.fault(
                (*config_path, "downscale_to_zero_delay_s"),
                "missing, and min_replicas is 0: set how many idle seconds end the last replica "
                f"(Serve would take downscale_delay_s, {scaling.downscale_delay_s:g})",
            )


def metrics_come_each_second(checked: Checked) -> Iterator[Fault]:
    for path, _, _, scaling in _autoscaled(checked):
        if scaling.metrics_interval_s > METRICS_INTERVAL_S:
            own = "metrics_interval_s" in scaling.model_fields_set
            given = (
                "" if own else f"missing, and Serve's default is {scaling.metrics_interval_s:g}: "
            )
            yield checked.fault(
                (*path, "autoscaling_config", "metrics_interval_s"),
                f"{given}set {METRICS_INTERVAL_S:g}, or the policy decides on old load",
            )


def scaling_is_prompt(checked: Checked) -> Iterator[Fault]:
    """Serve's defaults are made for minutes; callers wait for seconds."""
    for path, _, _, scaling in _autoscaled(checked):
        if scaling.min_replicas >= scaling.max_replicas:
            continue
        for name, most in PROMPT_S.items():
            if (value := getattr(scaling, name)) > most:
                yield checked.fault(
                    (*path, "autoscaling_config", name),
                    f"{value:g} s pass before a burst adds a replica: set at most {most:g}",
                    Severity.WARNING,
                )


def replica_bounds_are_in_order(checked: Checked) -> Iterator[Fault]:
    for path, _, _, scaling in _autoscaled(checked):
        config_path: YamlPath = (*path, "autoscaling_config")
        bounds = f"min_replicas {scaling.min_replicas} and max_replicas {scaling.max_replicas}"
        if scaling.min_replicas > scaling.max_replicas:
            yield checked.fault(
                (*config_path, "min_replicas"),
                f"above max_replicas {scaling.max_replicas}: lower it, or raise the maximum",
            )
        elif scaling.initial_replicas is not None and not (
            scaling.min_replicas <= scaling.initial_replicas <= scaling.max_replicas
        ):
            yield checked.fault(
                (*config_path, "initial_replicas"),
                f"not between {bounds}: set it within them, or remove it",
            )


def target_is_below_the_limit(checked: Checked) -> Iterator[Fault]:
    """At target >= limit a full replica looks content, and no replica is ever added."""
    for path, _, deployment, scaling in _autoscaled(checked):
        if "max_ongoing_requests" not in deployment.model_fields_set:
            continue  # limit_is_given says so; a comparison with Serve's default would only confuse
        limit = deployment.max_ongoing_requests
        target = scaling.target_ongoing_requests
        if target is None:
            yield checked.fault(
                (*path, "autoscaling_config", "target_ongoing_requests"),
                f"null is no target: set it below max_ongoing_requests {limit}",
            )
        elif target >= limit:
            own = "target_ongoing_requests" in scaling.model_fields_set
            given = "" if own else f"missing, and Serve's default is {target:g}, "
            yield checked.fault(
                (*path, "autoscaling_config", "target_ongoing_requests"),
                f"{given}not below max_ongoing_requests {limit}: lower it (0.6 of the limit is a "
                "start), or raise the limit",
            )


def limit_is_given(checked: Checked) -> Iterator[Fault]:
    for app in checked.apps:
        for path, deployment in app.deployments():
            if "max_ongoing_requests" not in deployment.model_fields_set:
                yield checked.fault(
                    (*path, "max_ongoing_requests"),
                    f"missing, and Serve's default is {deployment.max_ongoing_requests}: set how "
                    "many requests one replica takes at once",
                )


def _autoscaled(checked: Checked) -> Iterator[tuple[YamlPath, App, Deployment, Autoscaling]]:
    for app in checked.apps:
        for path, deployment in app.deployments():
            if deployment.autoscaling_config is not None:
                yield path, app, deployment, deployment.autoscaling_config
