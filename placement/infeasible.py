"""The answer to a fleet that does not fit: what is missing, the proof, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modelyard.config.fleet import FleetSpec
from modelyard.contract.errors import ConfigError
from placement.bounds import bound
from placement.by_name import by_name
from placement.fleet_problem import FleetProblem, fleet_problem
from placement.free import Free, free_of, room_text
from placement.packing import pack
from placement.problem import Bound, Packing, Vector
from placement.ways_out import Way, packs, ways_out


class Infeasible(ConfigError):
    """Not everything has a place. The text is the whole answer.

    unplaced: (`name@version` or `swap:AREA`, replicas). packing: of what has one. bound: of all of
    it, with as many places as one likes. moving_helps: it fits if replicas that are placed move.
    """

    def __init__(
        self,
        text: str,
        *,
        packing: Packing,
        bound: Bound,
        ways: Sequence[Way],
        moving_helps: bool = False,
    ) -> None:
        super().__init__(text)
        self.packing = packing
        self.unplaced = packing.unplaced
        self.bound = bound
        self.ways = tuple(ways)
        self.moving_helps = moving_helps


def infeasible(
    spec: FleetSpec,
    memory: Mapping[str, int],
    lost: frozenset[str],
    packing: Packing,
    *,
    moved: bool = False,
) -> Infeasible:
    """moved: the packing keeps what was placed before, so that packing anew may find more."""
    asked = fleet_problem(spec, memory, lost, spares=False)
    lower = bound(asked.problem)
    if moved and packs(spec, memory, lost):
        text = "\n".join(
            [
                *_missing(asked, packing, spec),
                "Everything fits if replicas that are placed move:",
                "  - `--defrag` moves a few of them in steps that drop no request",
                "  - `--fresh` packs anew, and a deploy of that restarts whatever moves",
            ]
        )
        return Infeasible(text, packing=packing, bound=lower, ways=(), moving_helps=True)
    before = packing if moved else Packing(())
    if moved:
        # The proof and the sums are about the best that there is, not about what history left.
        packing = _with_more(packing, pack(asked.problem))
    versions = [one for name, _ in packing.unplaced for one in _versions(asked, name)]
    ways = ways_out(spec, memory, lost, versions, before)
    lines = [*_missing(asked, packing, spec), *_proof(asked, lower)]
    if ways:
        lines += ["Ways out, each tried:", *(f"  - {way}" for way in ways)]
    else:
        lines.append("No single change of pools, spread, replicas or swapping makes room for it.")
    return Infeasible("\n".join(lines), packing=packing, bound=lower, ways=ways)


def _with_more(one: Packing, other: Packing) -> Packing:
    def missing(packing: Packing) -> int:
        return sum(count for _, count in packing.unplaced)

    return other if missing(other) < missing(one) else one


def _versions(asked: FleetProblem, item: str) -> Sequence[str]:
    area = asked.areas.get(item)
    return (item,) if area is None else tuple(area.members)


def _missing(asked: FleetProblem, packing: Packing, spec: FleetSpec) -> list[str]:
    free = free_of(asked.problem, packing)
    lines = ["the fleet does not fit:"]
    for name, count in packing.unplaced:
        item = asked.problem.item[name]
        needs = sorted({(pool, need) for pool, need in item.needs.items()})
        word = "replica" if count == 1 else "replicas"
        if not needs:
            lines.append(f"  {name}: no machine of its pools is large enough")
        for pool, need in needs:
            what = f"{count} {word} of {_need_text(pool, need, spec)} in {pool}"
            lines.append(f"  {name}: {what}; {_room(free, pool)}")
    return lines


def _need_text(pool: str, need: Vector, spec: FleetSpec) -> str:
    own = spec.node_pools[pool]
    if own.accelerator is not None and own.sharing == "whole":
        return f"{need[0]} whole {'device' if need[0] == 1 else 'devices'}"
    second = (
        f"{need[1] * 5} % compute" if own.accelerator is not None else f"{need[1] / 100:g} CPUs"
    )
    return f"{need[0] / 1000:g} GB and {second}"


def _room(free: Sequence[Free], pool: str) -> str:
    own = [one for one in free if one.place.pool == pool]
    if not own:
        return "there is no machine"
    total = sum(one.free[0] for one in own)
    largest = max(own, key=lambda one: one.free[0])
    some = own[0].place
    return (
        f"{room_text(total, some)} free in all, at most {room_text(largest.free[0], some)} of it "
        f"at one place ({largest.place.name})"
    )


def _proof(asked: FleetProblem, lower: Bound) -> list[str]:
    there = len(asked.problem.places)
    if not there or not lower.places:
        return []  # a bound counts the kinds of place that there are
    least = f"at least {lower.places} {'place' if lower.places == 1 else 'places'}"
    if lower.places > there:
        return [f"Whoever packs it, all of it takes {least}; there are {there}."]
    if not by_name(asked.problem).impossible:
        return ["No packing of all of it was found (it is not proved impossible)."]
    return [
        f"All of it takes {least}, of which there are {there}: what is short is room of the right "
        "pool, zone or size."
    ]
