"""Small fleets for tests, made of plain records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modelyard.config.fleet import FleetSpec
from modelyard.config.fleet_file import read_fleet

FIGURE_7 = Path(__file__).parents[2] / "configs" / "fleets" / "figure7.fleet.yaml"


def figure_7() -> FleetSpec:
    return read_fleet(FIGURE_7).spec


def shared(nodes: int = 1, **more: Any) -> dict[str, Any]:
    """Machines of one device of 80 GB each, shared, in whole GB."""
    given = {"accelerator": "H100", "memory_gb": 80, "cpus": 16, "sharing": "shared"}
    return {"nodes": nodes, **given, "slices": None, "price_per_hour": 2.5, **more}


def model(memory_gb: float, *pools: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "generator",
        "pool": list(pools or ("gpu",)),
        "memory_gb": memory_gb,
        "serve": {"max_ongoing_requests": 4},
        "versions": {"1": {"artifact": "s3://models.example/m/any/1"}},
        **more,
    }


def replicas(count: int, least: int = 1) -> dict[str, Any]:
    return {"min_replicas": least, "max_replicas": count}


def fleet(pools: dict[str, Any], models: dict[str, Any]) -> FleetSpec:
    return FleetSpec.model_validate(
        {
            "schema": "modelyard/fleet/v1",
            "http_options": {"host": "127.0.0.1"},
            "control": {"state_path": "/c"},
            "node_pools": pools,
            "models": models,
            "routes": {name: {"stable": f"{name}@1"} for name in models},
            "tenants": {"demo": {"models": ["*"]}},
        }
    )


def memory_of(spec: FleetSpec) -> dict[str, int]:
    return {
        f"{name}@{number}": round((one.memory_gb or 0) * 1e9)
        for name, one in spec.models.items()
        for number in one.versions
    }
