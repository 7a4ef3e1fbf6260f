"""Rules about what a deploy could lose: open streams, the front door."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from modelyard.config.checked import App, Checked
from modelyard.config.demo import DEMO_KEY_HASHES
from modelyard.config.faults import Fault, Severity
from modelyard.config.rules.manifests import manifest_of

# Of the manifest's `measured`: of one answer, when nothing else ran.
MEASURED_SPEED: Final = "output_tokens_per_s"
# Where Ray listens unless told otherwise; what `modelyard up` moves, it compares when it starts.
RAY_PORTS: Final = {
    8265: "Ray's dashboard",
    8500: "Serve's fallback proxy",
    52365: "Ray's dashboard agent",
}


def drain_outlasts_answers(checked: Checked) -> Iterator[Fault]:
    """Serve kills a replica at the end of its drain, and with it every stream still open."""
    for app in checked.apps:
        total_s, alias = _longest_deadline(checked, app)
        manifest = manifest_of(checked, app)
        needed_s, of, where = total_s, repr(alias), "the route's deadlines.total_s, or lower that"
        if manifest is not None and manifest.limits.drain_s > total_s:
            needed_s, of = manifest.limits.drain_s, manifest.full_name
            where = "its manifest's limits.drain_s"
        for path, deployment in app.deployments():
            drain_s = deployment.graceful_shutdown_timeout_s
            if drain_s < needed_s:
                own = "graceful_shutdown_timeout_s" in deployment.model_fields_set
                given = "" if own else f"missing, and Serve's default is {drain_s:g}: "
                yield checked.fault(
                    (*path, "graceful_shutdown_timeout_s"),
                    f"{given}a deploy would cut answers of {of}: set at least {needed_s:g}, "
                    f"{where}",
                )


def _longest_deadline(checked: Checked, app: App) -> tuple[float, str]:
    routes = checked.all_routes if app.is_ingress else checked.routes_to(app)
    return max(((route.deadlines.total_s, alias) for alias, route in routes), default=(0.0, ""))


def a_good_replica_outlasts_a_bad_one(checked: Checked) -> Iterator[Fault]:
    """Without a surge Serve stops what serves before the new replica has passed its self-test.

    A planned place has no room for one more: there a new version is a new app, beside the old."""
    for app in checked.models:
        for path, deployment in app.deployments():
            if deployment.max_surge_percent == 0 and not deployment.placement_group_bundles:
                yield checked.fault(
                    (*path, "max_surge_percent"),
                    "0: a redeploy stops a good replica before the new one has passed its "
                    "self-test: set 100 if there is room for one more meanwhile",
                    Severity.WARNING,
                )


def drain_fits_the_measured_speed(checked: Checked) -> Iterator[Fault]:
    """Only a warning: a speed depends on the device and on what else runs there."""
    for app in checked.models:
        manifest = manifest_of(checked, app)
        output_tokens = manifest.limits.max_output_tokens if manifest else None
        speed = manifest.measured.get(MEASURED_SPEED, 0.0) if manifest else 0.0
        if manifest is None or output_tokens is None or speed <= 0:
            continue
        longest_s, drain_s = output_tokens / speed, manifest.limits.drain_s
        if longest_s > drain_s:
            yield checked.fault(
                (*app.path, "args", "artifact"),
                f"an answer of {output_tokens} tokens took {longest_s:.0f} s at the {speed:g} "
                f"tokens/s that {manifest.full_name} was measured at, and its limits.drain_s is "
                f"{drain_s:g}: a deploy may cut it; package a version with a longer drain_s or a "
                "smaller max_output_tokens",
                Severity.WARNING,
            )


def proxy_outlasts_answers(checked: Checked) -> Iterator[Fault]:
    """The ingress ends requests at their deadlines; a proxy that ends them sooner cuts answers."""
    timeout_s = checked.serve.http_options.request_timeout_s
    total_s = max((route.deadlines.total_s for _, route in checked.all_routes), default=0.0)
    if timeout_s is not None and timeout_s < total_s:
        yield checked.fault(
            ("http_options", "request_timeout_s"),
            f"below {total_s:g}, the longest deadlines.total_s of a route: remove it, or raise it",
        )


def host_is_given(checked: Checked) -> Iterator[Fault]:
    options = checked.serve.http_options
    if "host" not in options.model_fields_set:
        yield checked.fault(
            ("http_options", "host"),
            f"missing, and Serve's default {options.host} listens on every network: write "
            "`http_options: {host: 127.0.0.1, port: 8000}`, or the address that you mean",
        )


def port_is_free_of_ray(checked: Checked) -> Iterator[Fault]:
    port = checked.serve.http_options.port
    if port in RAY_PORTS:
        yield checked.fault(
            ("http_options", "port"),
            f"{RAY_PORTS[port]} listens there: choose another, such as 8000",
        )


def demo_keys_stay_at_home(checked: Checked) -> Iterator[Fault]:
    options = checked.serve.http_options
    if checked.table is None or "host" not in options.model_fields_set or is_loopback(options.host):
        return
    for index, key in enumerate(checked.table.keys):
        if key.sha256 in DEMO_KEY_HASHES:
            yield checked.fault(
                (*checked.table_path, "keys", index),
                f"key {key.id!r} is the public demonstration key, and http_options.host "
                f"{options.host} is not loopback: make your own with "
                "`modelyard keys new`, or listen on 127.0.0.1",
            )


def is_loopback(host: str) -> bool:
    """A name other than localhost counts as reachable: what it resolves to may change."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
