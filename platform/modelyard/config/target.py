"""The parts of a checked Serve config that a deployer needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from modelyard.config.table import Table, parse_table


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a Serve config deploys: its apps, its table, and where it will listen."""

    apps: tuple[str, ...]
    table: Table
    http_host: str
    http_port: int

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.http_host in ("0.0.0.0", "::") else self.http_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.http_port}"


def read_target(path: Path) -> Deployment:
    """Read a config that `modelyard check` has passed."""
    record: dict[str, Any] = yaml.safe_load(path.read_text())
    applications = record["applications"]
    ingress = next(app for app in applications if app.get("route_prefix") == "/")
    http = record.get("http_options", {})
    return Deployment(
        apps=tuple(app["name"] for app in applications),
        table=parse_table(ingress["deployments"][0]["user_config"], str(path)),
        http_host=http.get("host", "127.0.0.1"),
        http_port=http.get("port", 8000),
    )
