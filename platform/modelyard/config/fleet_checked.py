"""A fleet spec with what its rules need to know, and the sums that several of them do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from modelyard.config.faults import Fault, Severity, YamlPath
from modelyard.config.fleet import FleetModel, FleetSpec, NodePool
from modelyard.config.fleet_document import FleetDocument


@dataclass(frozen=True, slots=True)
class FleetChecked:
    """memory: bytes of one replica by `name@version`. unknown: of the others, why not."""

    document: FleetDocument
    spec: FleetSpec
    memory: Mapping[str, int]
    unknown: Mapping[str, str]

    def fault(self, path: YamlPath, message: str, severity: Severity = Severity.ERROR) -> Fault:
        return self.document.fault(path, message, severity)

    def models(self) -> Iterator[tuple[YamlPath, str, FleetModel]]:
        for name, model in self.spec.models.items():
            yield ("models", name), name, model

    def given(self, path: YamlPath) -> Any:
        """What the file says there, None where a default holds."""
        return self.document.value(path)


def allowed_pools(spec: FleetSpec, model: FleetModel) -> dict[str, NodePool]:
    """Those that a model names and `where` leaves to it, as far as they exist."""
    where = model.where
    return {
        name: pool
        for name in model.pool
        if (pool := spec.node_pools.get(name)) is not None
        and (where.zones is None or pool.zone in where.zones)
        and (where.accelerators is None or pool.accelerator in where.accelerators)
    }


def exact(number: float) -> Fraction:
    """As it was written: 0.1 is a tenth."""
    return Fraction(str(number))


def memory_per_place(pool: NodePool, tensor_parallel_size: int) -> int:
    """Bytes that one replica may have there at most."""
    return int(exact(pool.memory_gb) * 10**9) * tensor_parallel_size


def cpus_per_place(pool: NodePool, tensor_parallel_size: int) -> Fraction:
    """CPUs that one replica may have: its devices' part of the machine's, so that no device is left
    without."""
    if pool.accelerator is None:
        return exact(pool.cpus)
    return exact(pool.cpus) * tensor_parallel_size / pool.devices
