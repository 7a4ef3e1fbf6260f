"""The apps around the stand-in model: two ingresses, control, a tenant of each priority."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from modelyard.tenancy.keys import hash_key
from tests.benchmarks.stage import App
from tests.integration import stand_in

KEYS: Final = {
    tenant: f"my_{tenant}-1_for-tests-of-modelyard" for tenant in ("interactive", "batch")
}


def applications(folder: Path) -> list[App]:
    artifact = folder / stand_in.NAME / "1.0.0"
    stand_in.write_artifact(artifact)
    return [
        {
            "name": "ingress",
            "route_prefix": "/",
            "import_path": "deployments.ingress:app",
            "deployments": [_deployment("Ingress", 2, 1000) | {"user_config": _table()}],
        },
        {
            "name": "control",
            "route_prefix": None,
            "import_path": "deployments.control:app",
            "args": {"state_path": str(folder / "control.sqlite")},
            "deployments": [_deployment("Control", 1, 200) | {"user_config": _table()}],
        },
        {
            "name": stand_in.VERSION,
            "route_prefix": None,
            "import_path": "tests.integration.stand_in:app",
            "args": {"artifact": artifact.as_uri()},
            "deployments": [_deployment("Generator", 1, stand_in.SLOTS)],
        },
    ]


def _deployment(name: str, replicas: int, at_once: int) -> dict[str, Any]:
    return {
        "name": name,
        "num_replicas": replicas,
        "max_ongoing_requests": at_once,
        "ray_actor_options": {"num_cpus": 0.1},
    }


def _table() -> dict[str, Any]:
    return {
        "schema": "modelyard/table/v1",
        "region": "eu",
        "routes": {stand_in.NAME: {"stable": stand_in.VERSION}},
        "tenants": {
            name: {"tier": "paid", "region": "eu", "priority": name, "models": ["*"]}
            for name in KEYS
        },
        "keys": [
            {"id": f"{name}-1", "tenant": name, "sha256": hash_key(key), "roles": ["invoke"]}
            for name, key in KEYS.items()
        ],
    }
