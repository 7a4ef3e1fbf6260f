"""What is wrong with a fleet spec by itself; the Serve config that follows from it comes after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from modelyard.config.checked import parse
from modelyard.config.document import Document
from modelyard.config.faults import Fault, Severity
from modelyard.config.fleet import FleetSpec
from modelyard.config.fleet_checked import FleetChecked
from modelyard.config.fleet_document import FleetDocument, with_teams
from modelyard.config.fleet_memory import Artifacts, memory_by_version
from modelyard.config.rules import fleet_models, fleet_pools

FleetRule = Callable[[FleetChecked], Iterator[Fault]]

FLEET_RULES: Final[tuple[FleetRule, ...]] = (
    fleet_pools.machine_names_differ,
    fleet_pools.machine_names_are_labels,
    fleet_pools.regions_agree,
    fleet_pools.pools_exist,
    fleet_pools.places_are_left,
    fleet_pools.pools_are_alike,
    fleet_models.memory_is_known,
    fleet_models.tensor_parallel_fits_a_machine,
    fleet_models.only_generators_have_an_engine,
    fleet_models.the_planner_divides_devices,
    fleet_models.a_replica_fits_an_empty_place,
    fleet_models.compute_fits_a_device,
    fleet_models.spread_has_room,
    fleet_models.spread_has_replicas,
    fleet_models.swappable_is_one_replica,
    fleet_models.zero_replicas_are_meant,
)


@dataclass(frozen=True, slots=True)
class FleetReport:
    """checked: None where the spec's own fields are at fault. faults: in the files' order."""

    document: FleetDocument
    faults: tuple[Fault, ...]
    checked: FleetChecked | None

    @property
    def ok(self) -> bool:
        return not any(fault.severity is Severity.ERROR for fault in self.faults)


def check_fleet(document: Document, artifacts: Artifacts) -> FleetReport:
    """Raises DocumentError for a team file that is no YAML."""
    merged, faults = with_teams(document)
    spec, more = parse(merged, FleetSpec, merged.root, ())
    faults += more
    if spec is None:
        return FleetReport(merged, in_order(merged, faults), None)
    checked = FleetChecked(merged, spec, *memory_by_version(spec, artifacts))
    for rule in FLEET_RULES:
        faults += rule(checked)
    return FleetReport(merged, in_order(merged, faults), checked)


def in_order(document: FleetDocument, faults: list[Fault]) -> tuple[Fault, ...]:
    files = {file: index for index, file in enumerate(document.sources)}
    return tuple(
        sorted(faults, key=lambda fault: (files.get(fault.file, -1), fault.line or 0, fault.path))
    )
