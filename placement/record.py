"""A plan as plain data, for `--json`."""

from __future__ import annotations

from typing import Any

from modelyard.config.fleet import FleetSpec
from placement.free import free_of
from placement.plan import Plan
from placement.summary import summary_of


def plan_record(spec: FleetSpec, plan: Plan) -> dict[str, Any]:
    """Sizes in the packing's own units: MB and twentieths of a device, whole devices, or MB and
    hundredths of a CPU."""
    return {
        "summary": summary_of(spec, plan).as_record()
        | {"method": plan.packing.method, "bounds": dict(plan.bound.by), "proof": plan.bound.proof},
        "places": [
            {
                "place": one.place.name,
                "pool": one.place.pool,
                "zone": one.place.zone,
                "size": list(one.place.size),
                "used": list(one.used),
                "free": list(one.free),
                "stranded": list(one.stranded),
                "replicas": {held.item: held.replicas for held in one.held},
            }
            for one in free_of(plan.problem, plan.packing)
        ],
        "cells": [
            {
                "app": cell.app,
                "places": list(cell.places),
                "min_replicas": cell.min_replicas,
                "max_replicas": cell.replicas,
            }
            for cell in plan.cells
        ],
        "swap_areas": {
            name: area.model_dump(mode="json") for name, area in sorted(plan.swap_areas.items())
        },
    }
