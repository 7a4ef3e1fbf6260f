"""The shipped configuration with tenants of several kinds, and two later deploys of it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from modelyard.config.demo import NIGHTLY_KEY
from modelyard.tenancy.keys import hash_key

CONFIG: Final = Path(__file__).parents[2] / "configs" / "local.serve.yaml"
EMBEDDER: Final = "all-minilm-l6-v2@1.0.0"
PERMITS: Final = 4


@dataclass(frozen=True, slots=True)
class Tenant:
    """weight: its part of the requests. models: None for all of them."""

    key: str
    weight: float
    models: frozenset[str] | None = None


def _key(name: str) -> str:
    return f"my_{name}-1_for-tests-of-modelyard"


TENANTS: Final = {
    "open": Tenant(_key("open"), 4.0),
    "metered": Tenant(_key("metered"), 2.0),
    "capped": Tenant(_key("capped"), 2.0),
    "nightly": Tenant(NIGHTLY_KEY, 1.0, frozenset(("support-embed", "support-intent"))),
}
_PRIORITIES: Final = {"open": "interactive", "metered": "interactive", "capped": "batch"}
_QUOTAS: Final = {
    "metered": {
        "input_tokens_per_min": 60_000,
        "input_burst_tokens": 4000,
        "output_tokens_per_min": 600,
        "output_burst_tokens": 300,
    },
    "capped": {"max_active_sequences": PERMITS},
}


def config() -> dict[str, Any]:
    record: dict[str, Any] = yaml.safe_load(CONFIG.read_text())
    for table in tables(record):
        for name, priority in _PRIORITIES.items():
            table["tenants"][name] = {
                "tier": "free",
                "region": "eu",
                "priority": priority,
                "models": ["*"],
            }
            key = {"id": f"{name}-1", "tenant": name, "sha256": hash_key(TENANTS[name].key)}
            table["keys"].append(key)
        table["quotas"] = copy.deepcopy(_QUOTAS)
    return record


def retuned(record: dict[str, Any]) -> dict[str, Any]:
    """A deploy that changes user_config alone: the table, and how small models gather."""
    changed = copy.deepcopy(record)
    for table in tables(changed):
        table["routes"]["support-assistant"]["limits"]["max_queued_requests"] = 60
    for app in changed["applications"]:
        if "max_wait_ms" in app["deployments"][0].get("user_config", {}):
            app["deployments"][0]["user_config"] = {"max_batch_size": 16, "max_wait_ms": 2}
    return changed


def replaced(record: dict[str, Any]) -> dict[str, Any]:
    """A deploy that replaces the embedder's replica by a new one."""
    changed = copy.deepcopy(record)
    [app] = [app for app in changed["applications"] if app["name"] == EMBEDDER]
    app["deployments"][0]["ray_actor_options"] = {"num_cpus": 0.4}
    return changed


def tables(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The ingress's and control's: YAML anchors are one object until somebody copies them."""
    found = {
        id(config): config
        for app in record["applications"]
        if "routes" in (config := app["deployments"][0].get("user_config", {}))
    }
    return list(found.values())


def text_of(record: dict[str, Any]) -> str:
    return str(yaml.safe_dump(record, sort_keys=False))
