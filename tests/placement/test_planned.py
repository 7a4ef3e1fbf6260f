"""Plans: everything that is placed fits, and what is placed stays."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.config.fleet import FleetSpec
from modelyard.contract.errors import ConfigError
from placement.express import to_yaml
from placement.fleet_problem import fleet_problem
from placement.planned import make_plan, planned
from placement.problem import Packing, Placed
from placement.summary import summary_of
from placement.valid import violations
from tests.placement.fleets import fleet, memory_of, model, replicas, shared


def three_zones(nodes: int = 2) -> dict[str, Any]:
    return {zone: shared(nodes, zone=zone) for zone in ("a", "b", "c")}


def test_ten_replicas_over_three_zones_survive_the_loss_of_one() -> None:
    spread = {"zones": 3, "survive": "zone"}
    spec = fleet(
        three_zones(), {"m": model(24, "a", "b", "c", spread=spread, scaling=replicas(10))}
    )
    plan = make_plan(spec, memory_of(spec))
    zones = Counter[str]()
    for placed in plan.packing.placed:
        zones[plan.problem.place[placed.place].zone] += placed.replicas
    assert zones == {"a": 5, "b": 5, "c": 5}
    after = make_plan(spec, memory_of(spec), plan.cells, lost=frozenset({"a-0", "a-1"}))
    assert after.packing.at == {
        key: count for key, count in plan.packing.at.items() if not key[1].startswith("a-")
    }
    assert sum(after.packing.at.values()) == 10


def test_a_lost_machine_moves_only_what_was_on_it() -> None:
    spec = fleet({"gpu": shared(4)}, {"x": model(30, scaling=replicas(5)), "y": model(40)})
    before = make_plan(spec, memory_of(spec))
    gone = before.cells[0].places[0]
    host = before.problem.place[gone].host
    after = make_plan(spec, memory_of(spec), before.cells, lost=frozenset({host}))
    stayed = {key: count for key, count in before.packing.at.items() if key[1] != gone}
    assert stayed.items() <= after.packing.at.items()
    assert sum(after.packing.at.values()) == 6


def test_an_unknown_lost_machine_is_told() -> None:
    spec = fleet({"gpu": shared()}, {"m": model(1)})
    with pytest.raises(ConfigError, match="gpu-7 is no machine and no device of this fleet"):
        make_plan(spec, memory_of(spec), lost=frozenset({"gpu-7"}))


def test_partial_leaves_out_the_lowest_priority() -> None:
    models = {"x": model(50, priority=1), "y": model(50, priority=3), "z": model(50, priority=2)}
    spec = fleet({"gpu": shared(2)}, models)
    plan = make_plan(spec, memory_of(spec), partial=True)
    assert plan.packing.unplaced == (("x@1", 1),)
    assert not violations(plan.problem, plan.packing)


def test_a_smaller_fleet_drops_replicas_and_moves_none() -> None:
    def spec(count: int) -> FleetSpec:
        return fleet({"gpu": shared(4)}, {"m": model(30, scaling=replicas(count))})

    large = make_plan(spec(8), memory_of(spec(8)))
    small = make_plan(spec(3), memory_of(spec(3)), large.cells)
    assert sum(small.packing.at.values()) == 3
    assert all(count <= large.packing.at[key] for key, count in small.packing.at.items())
    assert {cell.app for cell in small.cells} <= {cell.app for cell in large.cells}


POOLS = st.fixed_dictionaries(
    {
        name: st.builds(
            shared,
            st.integers(1, 3),
            devices=st.integers(1, 2),
            zone=st.just(name),
            slices=st.sampled_from([None, 7, 8]),
        )
        for name in ("a", "b")
    }
)
MODELS = st.lists(
    st.builds(
        model,
        st.integers(3, 80),
        st.just("a"),
        st.just("b"),
        scaling=st.builds(replicas, st.integers(2, 5), st.integers(1, 2)),
        spread=st.sampled_from([{}, {"zones": 2}, {"nodes": 2}, {"zones": 2, "survive": "zone"}]),
        compute_percent=st.sampled_from([5.0, 12.5, 40.0]),
        priority=st.integers(0, 2),
    )
    | st.builds(
        model,
        st.integers(3, 80),
        st.just("a"),
        st.just("b"),
        swappable=st.just(True),
        scaling=st.just(replicas(1, 0)),
    ),
    min_size=1,
    max_size=4,
)


def records(models: list[dict[str, Any]]) -> dict[str, Any]:
    return {f"m{index}": one for index, one in enumerate(models)}


@settings(max_examples=25, deadline=None)
@given(POOLS, MODELS)
def test_what_is_placed_fits_and_a_second_plan_is_the_same(
    pools: dict[str, Any], models: list[dict[str, Any]]
) -> None:
    spec = fleet(pools, records(models))
    memory = memory_of(spec)
    plan = make_plan(spec, memory, partial=True)
    assert violations(plan.problem, plan.packing) == ()
    assert sum(cell.replicas for cell in plan.cells if cell.version in plan.problem.item) == sum(
        placed.replicas for placed in plan.packing.placed if placed.item in memory
    )
    summary = summary_of(spec, plan)
    assert summary.unplaced or summary.used >= summary.bound_places
    again = make_plan(spec, memory, plan.cells, partial=True)
    assert again.packing.at == plan.packing.at
    assert to_yaml(spec, again, "x", "0") == to_yaml(spec, plan, "x", "0")


@settings(max_examples=15, deadline=None)
@given(POOLS, MODELS, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(
    pools: dict[str, Any], models: list[dict[str, Any]], order: Any
) -> None:
    def shuffled(record: dict[str, Any]) -> dict[str, Any]:
        keys = list(record)
        order.shuffle(keys)
        return {key: record[key] for key in keys}

    one = fleet(pools, records(models))
    other = fleet(
        {name: shuffled(pool) for name, pool in shuffled(pools).items()},
        {name: shuffled(each) for name, each in shuffled(records(models)).items()},
    )
    made, again = (make_plan(spec, memory_of(spec), partial=True) for spec in (one, other))
    assert made.cells == again.cells
    assert made.packing.unplaced == again.packing.unplaced


def test_two_models_over_two_zones_share_the_odd_machine_whatever_their_names() -> None:
    pools = {"a": shared(1, zone="a"), "b": shared(2, zone="b")}
    one = model(40, "a", "b", scaling=replicas(3), spread={"zones": 2})
    for names in ("ab", "ac", "bc", "xy"):
        spec = fleet(pools, dict.fromkeys(names, one))
        assert not make_plan(spec, memory_of(spec)).packing.unplaced


def test_a_lost_machine_of_a_zone_takes_no_more_than_spare_replicas() -> None:
    pools = {name: shared(2, zone=name, memory_gb=40) for name in "abc"}
    one = model(35, "a", "b", "c", scaling=replicas(4), spread={"zones": 3, "survive": "zone"})
    spec = fleet(pools, {"m": one})
    memory = memory_of(spec)
    before = make_plan(spec, memory)
    after = make_plan(spec, memory, before.cells, lost=frozenset({"a-0"}))

    assert sum(before.packing.at.values()) == 6
    assert sum(after.packing.at.values()) == 5
    assert after.packing.at.items() <= before.packing.at.items()
    assert not violations(after.problem, after.packing)


def test_the_order_of_pools_in_one_zone_does_not_name_the_cells() -> None:
    one = model(60, "a", "b", scaling=replicas(2))
    plans = [
        make_plan(spec, memory_of(spec)).cells
        for spec in (
            fleet({name: shared(1) for name in order}, {"m": one}) for order in ("ab", "ba")
        )
    ]

    assert plans[0] == plans[1]


def test_a_number_of_places_proves_nothing_where_some_cost_money() -> None:
    pools = {"free": shared(2, price_per_hour=0), "paid": shared(1)}
    models = {"m": model(60, "free", "paid"), "x": model(60, "free", "paid")}
    spec = fleet(pools, models)
    asked = fleet_problem(spec, memory_of(spec))
    dear = Packing((Placed("m@1", "free-0-d0", 1), Placed("x@1", "paid-0-d0", 1)))

    assert not summary_of(spec, planned(spec, asked, dear)).proved
    assert summary_of(spec, make_plan(spec, memory_of(spec))).proved
