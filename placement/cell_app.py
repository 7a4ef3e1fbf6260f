"""One cell as a Serve app.

Nothing here depends on the other cells of its version, so that one more of them restarts none.
"""

from __future__ import annotations

import math
from typing import Any, Final

from modelyard.config.fleet import FleetModel, FleetSpec, Scaling
from modelyard.config.rules.scaling import METRICS_INTERVAL_S, POLICY
from modelyard.config.shells import SHELLS
from modelyard.contract.operations import Kind
from placement.needs import need_at
from placement.plan import Cell, Plan
from placement.problem import Place, Vector
from placement.resources import (
    CPU,
    GPU,
    GPU_COMPUTE,
    GPU_MEMORY,
    LABEL,
    MEMORY,
    Resources,
    is_shared,
    needed,
)

TARGET_SHARE: Final = 0.6  # of max_ongoing_requests: above it a burst finds no free slot
# What is loaded has a floor under it; without one its memory is wanted by another model.
SWAPPED_OUT_AFTER_S: Final = 1.0
_IMPORT_PATHS: Final = {shell.kind: path for path, shell in SHELLS.items() if shell.kind}


def cell_app(spec: FleetSpec, plan: Plan, cell: Cell) -> dict[str, Any]:
    model_name, _, version = cell.version.partition("@")
    model = spec.models[model_name]
    place = plan.problem.place[cell.places[0]]
    need = need_of(spec, plan, cell.version, place)
    path = _IMPORT_PATHS[model.kind]
    app: dict[str, Any] = {"name": cell.app, "route_prefix": None, "import_path": path}
    if model.serve.runtime_env is not None:
        app["runtime_env"] = model.serve.runtime_env
    app["args"] = _args(model, version, place, need)
    bundle = needed(place, need, model.cpus)
    scaling = model.scaling_of(version)
    app["deployments"] = [
        {"name": SHELLS[path].deployment}
        | _served(model)
        | {
            "ray_actor_options": _actor_options(bundle),
            "placement_group_bundles": [bundle],
            "placement_group_strategy": "STRICT_PACK",
            "placement_group_bundle_label_selector": [{LABEL: selector(cell.places)}],
            "autoscaling_config": _autoscaling(model, scaling, cell),
        }
    ]
    return app


def selector(places: tuple[str, ...]) -> str:
    """Ray's words for "on one of these nodes"."""
    return places[0] if len(places) == 1 else f"in({','.join(places)})"


def need_of(spec: FleetSpec, plan: Plan, version: str, place: Place) -> Vector:
    """What a replica of a version takes there; of a swap area its own part, not the whole."""
    parts = [area.models[version] for area in plan.swap_areas.values() if version in area.models]
    if parts:
        model = spec.models[version.partition("@")[0]]
        return need_at(model, round(parts[0] * 1e9), spec.node_pools[place.pool])
    need = plan.problem.item[version].need_at(place)
    assert need is not None
    return need


def _args(model: FleetModel, version: str, place: Place, need: Vector) -> dict[str, Any]:
    own = model.versions[version]
    args: dict[str, Any] = {"artifact": own.artifact}
    if own.digest is not None:
        args["digest"] = own.digest
    for name in ("start_budgets", "watchdog"):
        if (part := getattr(model, name)) is not None:
            args[name] = part.model_dump(exclude_unset=True)
    # Floored: the shares of all replicas on a device must not add up to more than it.
    share = math.floor(need[0] * 10_000 / place.size[0]) / 10_000 if is_shared(place) else None
    if model.kind is not Kind.GENERATOR:
        return args if share is None else args | {"gpu_memory_utilization": share}
    engine = model.engine.model_dump(exclude_none=True) if model.engine is not None else {}
    if share is not None:
        engine["gpu_memory_utilization"] = share
    if model.tensor_parallel_size > 1:
        engine["tensor_parallel_size"] = model.tensor_parallel_size
    return args | ({"engine": engine} if engine else {})


def _served(model: FleetModel) -> dict[str, Any]:
    serve = model.serve
    options: dict[str, Any] = {
        "max_ongoing_requests": serve.max_ongoing_requests,
        "graceful_shutdown_timeout_s": serve.graceful_shutdown_timeout_s,
        "health_check_period_s": serve.health_check_period_s,
        "health_check_timeout_s": serve.health_check_timeout_s,
        "max_surge_percent": serve.max_surge_percent,
    }
    if serve.user_config is not None:
        options["user_config"] = serve.user_config
    if serve.logging_config is not None:
        options["logging_config"] = serve.logging_config.model_dump(exclude_unset=True)
    return options


def _actor_options(bundle: Resources) -> dict[str, Any]:
    """The whole bundle: Ray gives an actor nothing that it does not ask for."""
    options: dict[str, Any] = {"num_cpus": bundle.get(CPU, 0)}
    if GPU in bundle:
        options["num_gpus"] = bundle[GPU]
    if MEMORY in bundle:
        options["memory"] = bundle[MEMORY]
    own = {name: bundle[name] for name in (GPU_MEMORY, GPU_COMPUTE) if name in bundle}
    return options | ({"resources": own} if own else {})


def _to_zero_delay_s(model: FleetModel, scaling: Scaling) -> float:
    """The spec has no say for a swappable model: its memory is promised to the next one."""
    if model.swappable:
        return SWAPPED_OUT_AFTER_S
    given = scaling.downscale_to_zero_delay_s
    # A cell may be empty while another of its version is not: then it goes as any replica does.
    return scaling.downscale_delay_s if given is None else given


def _autoscaling(model: FleetModel, scaling: Scaling, cell: Cell) -> dict[str, Any]:
    """Always with it, and never num_replicas: adding it later would restart the app."""
    limit = model.serve.max_ongoing_requests
    target = scaling.target_ongoing_requests or round(TARGET_SHARE * limit, 2)
    config: dict[str, Any] = {
        "min_replicas": cell.min_replicas,
        "max_replicas": cell.replicas,
        "target_ongoing_requests": target,
        "metrics_interval_s": METRICS_INTERVAL_S,
        "look_back_period_s": scaling.look_back_period_s,
        "upscale_delay_s": scaling.upscale_delay_s,
        "downscale_delay_s": scaling.downscale_delay_s,
    }
    if cell.min_replicas == 0:
        config["downscale_to_zero_delay_s"] = _to_zero_delay_s(model, scaling)
    return config | {"policy": {"policy_function": POLICY}}
