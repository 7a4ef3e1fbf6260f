"""What would make room for what has none: each way is tried by packing before it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from modelyard.config.fleet import FleetModel, FleetSpec, Spread
from modelyard.config.fleet_checked import allowed_pools
from placement.edits import swappable, with_model, with_nodes, with_replicas, with_slices
from placement.fleet_problem import fleet_problem, versions_of
from placement.money import price_text
from placement.online import add
from placement.packing import pack
from placement.problem import Packing

Try = Callable[[FleetSpec], bool]

_MOST_NODES: Final = 4096
_MOST_PARTNERS: Final = 40  # models tried as partners of a swap area
_EXACT_REPLICAS: Final = 500  # above it, the fast path alone says whether a way works
_LISTED: Final = 3  # ways of one sort


@dataclass(frozen=True, slots=True)
class Way:
    """per_hour: what it costs more. changed: the fleet after it. anew: only if what is placed
    moves."""

    text: str
    changed: FleetSpec = field(compare=False, repr=False)
    per_hour: float = 0.0
    anew: bool = False

    def __str__(self) -> str:
        price = f": +{price_text(self.per_hour)}" if self.per_hour else ""
        moves = "; placed replicas move (`--fresh` or `--defrag`)" if self.anew else ""
        return f"{self.text}{price}{moves}"


def ways_out(
    spec: FleetSpec,
    memory: Mapping[str, int],
    lost: frozenset[str],
    versions: Sequence[str],
    before: Packing,
) -> tuple[Way, ...]:
    """The cheapest first. versions: those without a place, swappable ones by their own names.
    before: what is placed already."""

    def fits(changed: FleetSpec) -> bool:
        return packs(changed, memory, lost)

    models = list(dict.fromkeys(version.partition("@")[0] for version in versions))
    ways = [
        *_finer(spec, models, fits),
        *_other_pools(spec, models, fits),
        *_less_spread(spec, models, fits),
        *_swapping(spec, memory, models, fits),
        *_fewer(spec, versions, fits),
        *_machines(spec, models, fits),
    ]
    if before.placed:
        ways = [replace(way, anew=not _keeps(way.changed, memory, lost, before)) for way in ways]
    return tuple(sorted(ways, key=lambda way: way.per_hour))


def _keeps(
    spec: FleetSpec, memory: Mapping[str, int], lost: frozenset[str], before: Packing
) -> bool:
    """Whether everything has a place where nothing moves."""
    return not add(fleet_problem(spec, memory, lost, spares=False).problem, before).unplaced


def packs(spec: FleetSpec, memory: Mapping[str, int], lost: frozenset[str]) -> bool:
    """Whether everything has a place, packed anew."""
    problem = fleet_problem(spec, memory, lost, spares=False).problem
    if not pack(problem, exact=False).unplaced:
        return True
    small = sum(item.replicas for item in problem.items) <= _EXACT_REPLICAS
    return small and not pack(problem).unplaced


def _finer(spec: FleetSpec, models: Sequence[str], fits: Try) -> Iterator[Way]:
    for name in _pools(spec, models):
        pool = spec.node_pools[name]
        in_parts = pool.accelerator and pool.sharing == "shared" and pool.slices is not None
        if in_parts and fits(changed := with_slices(spec, name, None)):
            parts = f"parts of 1/{pool.slices}"
            yield Way(f"give out whole GB in pool {name} (`slices: null`), not {parts}", changed)


def _other_pools(spec: FleetSpec, models: Sequence[str], fits: Try) -> Iterator[Way]:
    for model in models:
        own = spec.models[model]
        others = [n for n in spec.node_pools if n not in own.pool and _alike(spec, own, n)]
        for name in others:
            if fits(changed := with_model(spec, model, pool=(*own.pool, name))):
                yield Way(f"let {model} be in pool {name} too", changed)


def _alike(spec: FleetSpec, model: FleetModel, name: str) -> bool:
    """The rule `pools_are_alike`."""
    pool = spec.node_pools[name]
    return all(
        (one.accelerator is None, one.sharing) == (pool.accelerator is None, pool.sharing)
        and (one.sharing == "whole" or one.memory_gb == pool.memory_gb)
        for one in allowed_pools(spec, model).values()
    )


def _less_spread(spec: FleetSpec, models: Sequence[str], fits: Try) -> Iterator[Way]:
    """Without spare replicas if that is enough, else without any spread."""
    for model in models:
        spread = spec.models[model].spread
        spareless = spread.model_copy(update={"survive": None})
        if spread.survive and fits(changed := with_model(spec, model, spread=spareless)):
            lost = f"{model} would lose capacity with a {spread.survive}"
            yield Way(f"leave spread.survive of {model} out: {lost}", changed)
        elif spread != Spread() and fits(changed := with_model(spec, model, spread=Spread())):
            yield Way(f"leave spread of {model} out: its replicas may lie anywhere", changed)


def _swapping(
    spec: FleetSpec, memory: Mapping[str, int], models: Sequence[str], fits: Try
) -> Iterator[Way]:
    """With the model that has the least to keep loaded, and may lie in the same pools."""
    found = 0
    for model in models:
        own = spec.models[model]
        if own.swappable or not _single(own):
            continue
        partners = [name for name, one in spec.models.items() if name != model and _single(one)]
        partners = [name for name in partners if set(spec.models[name].pool) == set(own.pool)]
        sizes = {name: _largest(name, spec.models[name], memory) for name in partners}
        for name in sorted(partners, key=lambda one: (sizes[one], one))[:_MOST_PARTNERS]:
            if found < _LISTED and fits(changed := swappable(spec, name, model)):
                found += 1
                also = "" if spec.models[name].swappable else f"{name} and "
                yield Way(
                    f"make {also}{model} swappable: {name} and {model} are loaded in turn, and the "
                    "first caller after a pause is told to come back",
                    changed,
                )


def _single(model: FleetModel) -> bool:
    return all(model.scaling_of(number).max_replicas == 1 for number in model.versions) and (
        model.spread == Spread()
    )


def _largest(name: str, model: FleetModel, memory: Mapping[str, int]) -> int:
    return max(memory[f"{name}@{number}"] for number in model.versions)


def _fewer(spec: FleetSpec, versions: Sequence[str], fits: Try) -> Iterator[Way]:
    """The most replicas of the version that fit, others as they are."""
    for version, model, number in versions_of(spec):
        if version not in versions or model.swappable:
            continue
        most = model.scaling_of(number).max_replicas

        def with_at_most(replicas: int, version: str = version) -> bool:
            return fits(with_replicas(spec, version, replicas))

        if best := _last_that(with_at_most, most):
            changed = with_replicas(spec, version, best)
            yield Way(f"{version}: max_replicas {best} in place of {most}", changed)


def _last_that(holds: Callable[[int], bool], above: int) -> int:
    """The largest n below `above` that holds, 0 for none: what holds for n holds for less."""
    low, high = 0, above
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _machines(spec: FleetSpec, models: Sequence[str], fits: Try) -> Iterator[Way]:
    """In one pool; and in the fewest of each that do together, where that is cheaper."""
    pools = _pools(spec, models)
    alone = {name: _fewest(spec, [name], fits) for name in pools}
    ways = [_with_more(spec, {name: count}) for name, count in alone.items() if count]
    yield from ways
    if len(pools) < 2 or not (of_each := _fewest(spec, pools, fits)):
        return
    counts = dict.fromkeys(pools, of_each)
    # The dearest first, so that what stays is cheap.
    for name in sorted(pools, key=lambda one: -spec.node_pools[one].price_per_hour):
        while counts[name] and fits(_with_all(spec, counts | {name: counts[name] - 1})):
            counts[name] -= 1
    mixed = _with_more(spec, counts)
    if all(mixed.per_hour < way.per_hour for way in ways):
        yield mixed


def _with_more(spec: FleetSpec, counts: Mapping[str, int]) -> Way:
    text = " and ".join(_more(name, count) for name, count in counts.items() if count)
    price = sum(count * spec.node_pools[name].price_per_hour for name, count in counts.items())
    return Way(text, _with_all(spec, counts), price)


def _fewest(spec: FleetSpec, pools: Sequence[str], fits: Try) -> int:
    """Machines more in each of these pools, 0 where no number of them is enough."""
    return _first_that(lambda count: fits(_with_all(spec, dict.fromkeys(pools, count))))


def _more(pool: str, count: int) -> str:
    return f"{count} more {'machine' if count == 1 else 'machines'} in pool {pool}"


def _with_all(spec: FleetSpec, counts: Mapping[str, int]) -> FleetSpec:
    for name, count in counts.items():
        spec = with_nodes(spec, name, count)
    return spec


def _first_that(holds: Callable[[int], bool]) -> int:
    """The fewest that hold, 0 for none up to the most."""
    high = 1
    while not holds(high):
        high *= 2
        if high > _MOST_NODES:
            return 0
    return _last_that(lambda n: not holds(n), high) + 1


def _pools(spec: FleetSpec, models: Sequence[str]) -> list[str]:
    return list(
        dict.fromkeys(n for model in models for n in allowed_pools(spec, spec.models[model]))
    )
