"""A plan from a fleet spec and what is placed already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from modelyard.config.fleet import FleetSpec
from modelyard.contract.errors import ConfigError
from placement.bounds import bound
from placement.cells import cells_of_packing, placed_before
from placement.fleet_problem import FleetProblem, fleet_problem
from placement.infeasible import Infeasible, infeasible
from placement.inventory import places_of
from placement.online import add
from placement.packing import pack
from placement.plan import Cell, Plan
from placement.problem import Packing, Problem


def make_plan(
    spec: FleetSpec,
    memory: Mapping[str, int],
    previous: Sequence[Cell] = (),
    *,
    lost: frozenset[str] = frozenset(),
    partial: bool = False,
) -> Plan:
    """Every replica of the spec at a place. What `previous` has placed stays where it fits.

    memory: bytes of one replica by `name@version` (`modelyard.config.fleet_memory`). lost: machines
    or places that have gone. partial: leave out what has no place, the lowest priority first, in
    place of raising. Raises Infeasible with the ways out, ConfigError for an unknown lost name.
    """
    _require_known(spec, lost)
    asked = fleet_problem(spec, memory, lost)
    before = placed_before(asked, previous)
    packing = _packed(asked.problem, before)
    if packing.unplaced and lost:
        bare = fleet_problem(spec, memory, lost, spares=False)
        asked, packing = _with_spares_that_fit(asked, bare, packing, before)
    if packing.unplaced and not partial:
        raise infeasible(spec, memory, lost, packing, moved=bool(before.placed))
    return planned(spec, asked, packing, previous)


def _packed(problem: Problem, before: Packing) -> Packing:
    return add(problem, before) if before.placed else pack(problem)


def _with_spares_that_fit(
    full: FleetProblem, bare: FleetProblem, packing: Packing, before: Packing
) -> tuple[FleetProblem, Packing]:
    """After a loss spare replicas are welcome, not demanded: of the packing with all of them, or
    else of one without, filled up. bare: without; what even that cannot place stays unplaced."""
    if (found := _enough(full, bare, packing)) is not None:
        return found
    without = _packed(bare.problem, before)
    if without.unplaced:
        return bare, without
    filled = _enough(full, bare, add(full.problem, without))
    return (bare, without) if filled is None else filled


def _enough(
    full: FleetProblem, bare: FleetProblem, packing: Packing
) -> tuple[FleetProblem, Packing] | None:
    """The packing as an answer to what it places; None where that is less than `bare` asks for."""
    counts: Counter[str] = Counter()
    for one in packing.placed:
        counts[one.item] += one.replicas
    if any(counts[item.name] < item.replicas for item in bare.problem.items):
        return None
    return full.asking_for(counts), replace(packing, unplaced=())


def planned(
    spec: FleetSpec, asked: FleetProblem, packing: Packing, previous: Sequence[Cell] = ()
) -> Plan:
    """The plan of a packing that is there already."""
    where = {placed.item: placed.place for placed in packing.placed if placed.item in asked.areas}
    areas = {
        area.name: area.in_table(asked.problem.place[where[item]], spec)
        for item, area in sorted(asked.areas.items())
        if item in where
    }
    cells = cells_of_packing(asked, packing, previous)
    return Plan(asked.problem, packing, bound(asked.problem), cells, areas)


def _require_known(spec: FleetSpec, lost: frozenset[str]) -> None:
    known = {name for place in places_of(spec) for name in (place.name, place.host)}
    for name in sorted(lost - known):
        raise ConfigError(f"{name} is no machine and no device of this fleet: check the name")


__all__ = ["Infeasible", "make_plan", "planned"]
