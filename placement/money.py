"""What machines cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from modelyard.config.fleet import FleetSpec
from modelyard.config.fleet_names import machine_names

HOURS_PER_MONTH: Final = 730


def per_hour(spec: FleetSpec, hosts: Iterable[str] | None = None) -> float:
    """Of all machines, or of these. A machine costs its whole price with one device in use."""
    wanted = None if hosts is None else set(hosts)
    return sum(
        pool.price_per_hour
        for name, pool in spec.node_pools.items()
        for host in machine_names(name, pool)
        if wanted is None or host in wanted
    )


def price_text(per_hour: float) -> str:
    return f"{per_hour:,.2f} per hour ({per_hour * HOURS_PER_MONTH:,.0f} per month)"
