"""Rules about what a deploy could lose: open streams, the environment, the front door."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from modelyard.config.checked import Checked
from modelyard.config.demo import DEMO_KEY_HASHES
from modelyard.config.faults import Fault, YamlPath

# The shells set these in code before they load an engine (deployments/vllm_engine.py).
RESERVED_VARIABLES: Final = frozenset(
    {
        "TORCHDYNAMO_DISABLE",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "HF_HUB_OFFLINE",
        "TRANSFORMERS_OFFLINE",
        "TOKENIZERS_PARALLELISM",
    }
)
RESERVED_PREFIX: Final = "VLLM_"


def drain_outlasts_answers(checked: Checked) -> Iterator[Fault]:
    """Serve kills a replica at the end of its drain, and with it every stream still open."""
    for app in checked.apps:
        routes = checked.all_routes if app.is_ingress else checked.routes_to(app)
        total_s, alias = max(
            ((route.deadlines.total_s, alias) for alias, route in routes), default=(0.0, "")
        )
        for path, deployment in app.deployments():
            drain_s = deployment.graceful_shutdown_timeout_s
            if drain_s < total_s:
                own = "graceful_shutdown_timeout_s" in deployment.model_fields_set
                given = "" if own else f"missing, and Serve's default is {drain_s:g}: "
                yield checked.fault(
                    (*path, "graceful_shutdown_timeout_s"),
                    f"{given}a deploy would cut answers of {alias!r}: set at least {total_s:g}, "
                    "the route's deadlines.total_s, or lower that",
                )


def environment_is_the_shells(checked: Checked) -> Iterator[Fault]:
    for app in checked.apps:
        yield from _reserved(checked, (*app.path, "runtime_env"), app.options.runtime_env)
        for path, deployment in app.deployments():
            yield from _reserved(
                checked,
                (*path, "ray_actor_options", "runtime_env"),
                deployment.ray_actor_options.runtime_env,
            )


def _reserved(checked: Checked, path: YamlPath, runtime_env: dict[str, Any]) -> Iterator[Fault]:
    variables = runtime_env.get("env_vars")
    for name in variables if isinstance(variables, dict) else ():
        if name in RESERVED_VARIABLES or name.startswith(RESERVED_PREFIX):
            yield checked.fault(
                (*path, "env_vars", name),
                "the shells set this variable themselves, to what the engine needs: remove it",
            )


def host_is_given(checked: Checked) -> Iterator[Fault]:
    options = checked.serve.http_options
    if "host" not in options.model_fields_set:
        yield checked.fault(
            ("http_options", "host"),
            f"missing, and Serve's default {options.host} listens on every network: write "
            "`http_options: {host: 127.0.0.1, port: 8000}`, or the address that you mean",
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
