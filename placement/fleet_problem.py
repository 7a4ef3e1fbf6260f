"""From a fleet spec to the packing problem that it asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from modelyard.config.fleet import FleetModel, FleetSpec
from placement.demand import Demand, after_a_loss, demand_of, without_spares
from placement.inventory import places_of
from placement.needs import item_of, needs_of
from placement.problem import Item, Place, Problem
from placement.swap_areas import Area, area_name


@dataclass(frozen=True)
class FleetProblem:
    """demands: of each version that has places of its own. areas: of the others, by item."""

    problem: Problem
    demands: Mapping[str, Demand]
    areas: Mapping[str, Area]

    def item_name(self, version: str) -> str | None:
        """The item that holds a version: itself, or its swap area. None for one of no item."""
        if version in self.demands:
            return version
        return next((item for item, area in self.areas.items() if version in area.members), None)

    def asking_for(self, replicas: Mapping[str, int]) -> FleetProblem:
        """With so many replicas of each item."""
        problem = Problem(
            self.problem.places,
            tuple(replace(item, replicas=replicas[item.name]) for item in self.problem.items),
        )
        demands = {
            name: replace(demand, replicas=replicas[name], least=min(demand.least, replicas[name]))
            for name, demand in self.demands.items()
        }
        return FleetProblem(problem, demands, self.areas)


def fleet_problem(
    spec: FleetSpec,
    memory: Mapping[str, int],
    lost: frozenset[str] = frozenset(),
    *,
    spares: bool = True,
) -> FleetProblem:
    """memory: bytes of one replica by `name@version`. lost: machines or places that have gone.
    spares: whether those that a spread has spare are asked for after a loss too."""
    places = places_of(spec, lost)
    items: list[Item] = []
    demands: dict[str, Demand] = {}
    swappable: dict[str, FleetModel] = {}
    for version, model, number in versions_of(spec):
        if model.swappable:
            swappable[version] = model
            continue
        scaling = model.scaling_of(number)
        demand = demand_of(scaling, model.spread)
        item = item_of(version, model, memory[version], spec, demand)
        if lost:
            zones, hosts = _left(item, places)
            demand = after_a_loss(demand, scaling, model.spread, zones, hosts)
            demand = demand if spares else without_spares(demand, scaling)
            item = item_of(version, model, memory[version], spec, demand)
        demands[version] = demand
        items.append(item)
    areas = {area.item.name: area for area in _areas(spec, swappable, memory)}
    items += (area.item for area in areas.values())
    return FleetProblem(Problem(places, tuple(items)), demands, areas)


def versions_of(spec: FleetSpec) -> Iterable[tuple[str, FleetModel, str]]:
    """`name@version`, its model, the version's number."""
    for name, model in spec.models.items():
        for number in model.versions:
            yield f"{name}@{number}", model, number


def _left(item: Item, places: Iterable[Place]) -> tuple[int, int]:
    """Zones and machines where it may still be."""
    there = [place for place in places if item.need_at(place) is not None]
    return len({place.zone for place in there}), len({place.host for place in there})


def _areas(
    spec: FleetSpec, swappable: Mapping[str, FleetModel], memory: Mapping[str, int]
) -> Iterable[Area]:
    """One for all models that may use the same pools."""
    groups: dict[frozenset[str], list[str]] = {}
    needs = {v: needs_of(model, memory[v], spec) for v, model in swappable.items()}
    for version in swappable:
        groups.setdefault(frozenset(needs[version]), []).append(version)
    for pools, members in groups.items():
        priority = max(swappable[version].priority for version in members)
        name = area_name(sorted(pools) or [min(members)])
        yield Area(name, {version: needs[version] for version in sorted(members)}, priority)
