"""The apps and targets of gateway.py: the platform in three sizes, and its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from modelyard.tenancy.keys import hash_key
from tests.benchmarks import bare, instant
from tests.benchmarks.stage import App

VERSION: Final = f"{instant.NAME}@{instant.VERSION}"
FEW, MANY = 10, 10_000
CHAT: Final = "/v1/chat/completions"
QUOTA: Final = {
    "input_tokens_per_min": 10**9,
    "output_tokens_per_min": 10**9,
    "requests_per_min": 10**7,
    "max_active_sequences": 10**5,
}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a load goes, and the groups of processes that a request passes, in order."""

    name: str
    unary: str
    stream: str
    groups: tuple[str, ...]
    tenants: int = 0

    def headers(self) -> list[Mapping[str, str]]:
        """One set for each tenant."""
        return [{"Authorization": f"Bearer {key_of(n)}"} for n in range(self.tenants)] or [{}]


def _platform(name: str, app: str, prefix: str, tenants: int) -> Target:
    groups = ("haproxy", f"{app}:Ingress", f"{VERSION}:Generator")
    return Target(name, prefix + CHAT, prefix + CHAT, groups, tenants)


PLATFORM: Final = _platform("platform", "ingress", "", FEW)
TENANTS: Final = _platform("10,000 tenants", "ingress-tenants", "/tenants", MANY)
REPLICAS: Final = _platform("4 ingress replicas", "ingress-replicas", "/replicas", FEW)
BARE: Final = Target(
    "bare two-hop Serve",
    f"/bare{bare.UNARY}",
    f"/bare{bare.STREAM}",
    ("haproxy", "bare:Front", "bare:Back"),
)
FLOOR: Final = Target("bare uvicorn", bare.UNARY, bare.STREAM, ("floor",))


def key_of(tenant: int) -> str:
    return f"my_k{tenant}_for-the-benchmark-only"


def applications(folder: Path) -> list[App]:
    """Every app of the benchmark, in one cluster: what takes turns must not differ in anything."""
    artifact = folder / instant.NAME / instant.VERSION
    instant.write_artifact(artifact)
    model = {
        "name": VERSION,
        "route_prefix": None,
        "import_path": "tests.benchmarks.instant:app",
        "args": {"artifact": artifact.as_uri()},
        "deployments": [
            {"name": "Generator", "num_replicas": 1, "ray_actor_options": {"num_cpus": 0.1}}
        ],
    }
    floor = {"name": "bare", "route_prefix": "/bare", "import_path": "tests.benchmarks.bare:app"}
    return [
        _ingress("ingress", "/", FEW),
        model,
        floor,
        _ingress("ingress-tenants", "/tenants", MANY),
        _ingress("ingress-replicas", "/replicas", FEW, replicas=4),
        _control(folder),
    ]


def _ingress(name: str, prefix: str, tenants: int, replicas: int = 1) -> App:
    deployment = {
        "name": "Ingress",
        "num_replicas": replicas,
        "max_ongoing_requests": 1000,
        "ray_actor_options": {"num_cpus": 0.1},
        "user_config": table(tenants),
    }
    return {
        "name": name,
        "route_prefix": prefix,
        "import_path": "deployments.ingress:app",
        "deployments": [deployment],
    }


def _control(folder: Path) -> App:
    """One for all three ingresses: the table of the largest holds the others' tenants too."""
    return {
        "name": "control",
        "route_prefix": None,
        "import_path": "deployments.control:app",
        "args": {"state_path": str(folder / "control.sqlite")},
        "deployments": [
            {
                "name": "Control",
                "num_replicas": 1,
                "max_ongoing_requests": 200,
                "ray_actor_options": {"num_cpus": 0.1},
                "user_config": table(MANY),
            }
        ],
    }


def table(tenants: int) -> dict[str, Any]:
    return {
        "schema": "modelyard/table/v1",
        "region": "eu",
        "routes": {instant.NAME: {"stable": VERSION}},
        "tenants": {
            f"t{n}": {"tier": "paid", "region": "eu", "priority": "interactive", "models": ["*"]}
            for n in range(tenants)
        },
        "keys": [
            {"id": f"k{n}", "tenant": f"t{n}", "sha256": hash_key(key_of(n)), "roles": ["invoke"]}
            for n in range(tenants)
        ],
        # Never used up: what it costs to keep, not to refuse. Of 10,000 tenants only a few:
        # hundreds a second that ask for the first time outrun control, and are refused.
        "quotas": {f"t{n}": QUOTA for n in range(FEW)},
    }
