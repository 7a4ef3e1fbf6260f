"""A plan as a Serve config: the file that is reviewed, deployed, and read again by the next plan.

Same inputs, same bytes: it holds no time and no host.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from modelyard.config.fleet import FleetSpec
from modelyard.config.shells import CONTROL, INGRESS
from modelyard.config.table import SCHEMA, Table, TableKeys
from placement.cell_app import cell_app
from placement.plan import Plan

_WIDTH: Final = 100


def serve_config(spec: FleetSpec, plan: Plan) -> dict[str, Any]:
    """Ingress and control, which share one table, then an app for each cell in the plan's order."""
    table = _Shared(table_of(spec, plan))
    return {
        "proxy_location": spec.proxy_location,
        "http_options": spec.http_options.model_dump(exclude_unset=True),
        "applications": [
            _ingress(spec, table),
            _control(spec, table),
            *(cell_app(spec, plan, cell) for cell in plan.cells),
        ],
    }


def to_yaml(spec: FleetSpec, plan: Plan, source_name: str, digest: str) -> bytes:
    """The file. digest: sha256 of all source files, in hex."""
    head = (
        f"# Made by `modelyard plan` from {source_name}: do not edit, change that and plan again.\n"
        f"# sha256 of the source: {digest}\n"
        "# This file is the placement: the next plan reads it, and moves nothing that still fits.\n"
    )
    body = yaml.dump(
        serve_config(spec, plan),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        width=_WIDTH,
        allow_unicode=True,
    )
    return (head + "\n" + body.replace("\n- name: ", "\n\n- name: ")).encode()


def table_of(spec: FleetSpec, plan: Plan) -> dict[str, Any]:
    """The spec's table as written, and the areas that swappable models share."""
    keys = set(TableKeys.model_fields)
    written = spec.model_dump(mode="json", by_alias=True, exclude_unset=True, include=keys)
    areas = {name: area.model_dump(mode="json") for name, area in sorted(plan.swap_areas.items())}
    record = {"schema": SCHEMA} | written | ({"swap_areas": areas} if areas else {})
    Table.model_validate(record)
    return record


def _ingress(spec: FleetSpec, table: dict[str, Any]) -> dict[str, Any]:
    front = spec.ingress
    return {
        "name": "ingress",
        "route_prefix": "/",
        "import_path": INGRESS,
        "deployments": [
            {
                "name": "Ingress",
                "num_replicas": front.num_replicas,
                "max_ongoing_requests": front.max_ongoing_requests,
                "graceful_shutdown_timeout_s": front.graceful_shutdown_timeout_s,
                "ray_actor_options": front.ray_actor_options.model_dump(exclude_unset=True),
                "user_config": table,
            }
        ],
    }


def _control(spec: FleetSpec, table: dict[str, Any]) -> dict[str, Any]:
    control = spec.control
    return {
        "name": "control",
        "route_prefix": None,
        "import_path": CONTROL,
        "args": {"state_path": control.state_path},
        "deployments": [
            {
                "name": "Control",
                "num_replicas": 1,
                "max_ongoing_requests": control.max_ongoing_requests,
                "ray_actor_options": control.ray_actor_options.model_dump(exclude_unset=True),
                "user_config": table,
            }
        ],
    }


class _Shared(dict[str, Any]):
    """The table, written once with an anchor: two copies of it could be edited apart."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return not isinstance(data, _Shared)

    def generate_anchor(self, node: yaml.Node) -> str:
        return "table"


_Dumper.add_representer(_Shared, yaml.SafeDumper.represent_dict)
