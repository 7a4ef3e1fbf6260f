"""What does not fit is told with the proof, and with ways out that each work."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from modelyard.config.fleet import FleetSpec, Spread
from placement.bounds import bound
from placement.edits import swappable, with_model, with_nodes, with_replicas, with_slices
from placement.fleet_problem import fleet_problem
from placement.free import free_of
from placement.infeasible import Infeasible
from placement.plan import Plan
from placement.planned import make_plan
from placement.valid import violations
from tests.placement.fleets import figure_7, fleet, memory_of, model, replicas, shared


def planned(spec: FleetSpec, **more: Any) -> Plan:
    return make_plan(spec, memory_of(spec), **more)


def fits(spec: FleetSpec) -> bool:
    try:
        made = planned(spec)
    except Infeasible:
        return False
    assert not violations(made.problem, made.packing)
    return not made.packing.unplaced


def refused(spec: FleetSpec, **more: Any) -> Infeasible:
    with pytest.raises(Infeasible) as error:
        planned(spec, **more)
    return error.value


def test_figure_7_has_97_gb_free_and_no_room_for_54() -> None:
    error = refused(figure_7())
    assert error.unplaced == (("support-next@1.0.0", 1),)
    rest = planned(figure_7(), partial=True)
    free = [one.free[0] // 1000 for one in free_of(rest.problem, rest.packing)]
    assert (sum(free), max(free)) == (97, 44)
    assert error.bound.places == 4
    assert error.bound.price == 10_000_000
    text = str(error)
    assert "1 replica of 54 GB" in text
    assert "97 GB free in all, at most 44 GB of it at one place (h100-0-d0)" in text
    assert "all of it takes at least 4 places; there are 3." in text
    assert "1 more machine in pool h100: +2.50 per hour (1,825 per month)" in text


def test_figure_7_is_placed_with_one_more_machine_and_proved_best() -> None:
    plan = planned(with_nodes(figure_7(), "h100", 1))
    assert not violations(plan.problem, plan.packing)
    assert len(plan.packing.used) == 4 == plan.bound.places
    # Nobody who was there moves for it.
    before = planned(figure_7(), partial=True)
    after = planned(with_nodes(figure_7(), "h100", 1), previous=before.cells)
    assert before.packing.at.items() <= after.packing.at.items()


def test_figure_7_is_placed_when_the_newcomer_takes_turns_with_the_30_gb_model() -> None:
    spec = swappable(figure_7(), "support-medium", "support-next")
    plan = planned(spec)
    assert not violations(plan.problem, plan.packing)
    (area,) = plan.swap_areas.values()
    assert area.models == {"support-medium@1.0.0": 36, "support-next@1.0.0": 54}
    assert bound(fleet_problem(spec, memory_of(spec)).problem).places == 3


WAYS: dict[str, Callable[[FleetSpec, re.Match[str]], FleetSpec]] = {
    r"give out whole GB in pool (\S+) \(`slices: null`\), not parts of 1/8": lambda spec, found: (
        with_slices(spec, found[1], None)
    ),
    r"let (\S+) be in pool (\S+) too": lambda spec, found: with_model(
        spec, found[1], pool=(*spec.models[found[1]].pool, found[2])
    ),
    r"leave spread.survive of (\S+) out: .*": lambda spec, found: with_model(
        spec, found[1], spread=spec.models[found[1]].spread.model_copy(update={"survive": None})
    ),
    r"leave spread of (\S+) out: .*": lambda spec, found: with_model(
        spec, found[1], spread=Spread()
    ),
    r"make .* swappable: (\S+) and (\S+) are loaded in turn.*": lambda spec, found: swappable(
        spec, found[1], found[2]
    ),
    r"(\S+): max_replicas (\d+) in place of \d+": lambda spec, found: with_replicas(
        spec, found[1], int(found[2])
    ),
}
MORE = re.compile(r"(\d+) more machines? in pool (\S+)")


def applied(spec: FleetSpec, text: str) -> FleetSpec:
    """As a person would do what the text says."""
    for pattern, edit in WAYS.items():
        if found := re.fullmatch(pattern, text):
            return edit(spec, found)
    machines = MORE.findall(text)
    assert machines, text
    for count, pool in machines:
        spec = with_nodes(spec, pool, int(count))
    return spec


SHORT = {
    "fragmentation": (figure_7(), ["make", "make", "make", "1 more"]),
    "eighths": (
        fleet({"gpu": shared(slices=8)}, {"x": model(41), "y": model(39)}),
        ["give out", "make", "1 more"],
    ),
    "another pool": (
        fleet({"gpu": shared(), "more": shared(2)}, {"x": model(50), "y": model(50)}),
        ["let", "make", "1 more"],
    ),
    "spare replicas": (
        fleet(
            {"a": shared(3, zone="a"), "b": shared(3, zone="b")},
            {"m": model(50, "a", "b", scaling=replicas(5), spread={"zones": 2, "survive": "zone"})},
        ),
        ["leave spread.survive", "m@1: max_replicas 3", "2 more"],
    ),
    "a spread": (
        fleet(
            {"a": shared(4, zone="a"), "b": shared(1, zone="b")},
            {"m": model(50, "a", "b", scaling=replicas(4), spread={"zones": 2})},
        ),
        ["leave spread of", "m@1: max_replicas 3", "1 more"],
    ),
    "too many": (
        fleet({"gpu": shared(2)}, {"m": model(30, scaling=replicas(9))}),
        ["m@1: max_replicas 4", "3 more"],
    ),
    "both zones short": (
        fleet(
            {"a": shared(1, zone="a"), "b": shared(1, zone="b", price_per_hour=4)},
            {"m": model(50, "a", "b", scaling=replicas(6), spread={"zones": 2})},
        ),
        ["m@1: max_replicas 2", "2 more machines in pool a and 2 more machines in pool b"],
    ),
}


@pytest.mark.parametrize(("spec", "expected"), SHORT.values(), ids=SHORT.keys())
def test_each_way_out_makes_room(spec: FleetSpec, expected: list[str]) -> None:
    error = refused(spec)
    texts = [way.text for way in error.ways]
    assert [any(text.startswith(start) for text in texts) for start in expected] == [True] * len(
        expected
    ), texts
    assert len(texts) == len(expected), texts
    assert [way.per_hour for way in error.ways] == sorted(way.per_hour for way in error.ways)
    for way in error.ways:
        assert fits(applied(spec, way.text)), way.text
        assert str(way) in str(error)


@pytest.mark.parametrize(("spec", "_"), SHORT.values(), ids=SHORT.keys())
def test_no_fewer_machines_and_no_more_replicas_than_told(spec: FleetSpec, _: list[str]) -> None:
    for way in refused(spec).ways:
        for count, pool in MORE.findall(way.text):
            fewer = way.text.replace(
                f"{count} more machine{'s' * (count != '1')} in pool {pool}",
                f"{int(count) - 1} more machines in pool {pool}",
            )
            assert not fits(applied(spec, fewer)), fewer
        if found := re.fullmatch(r"(\S+): max_replicas (\d+) in place of \d+", way.text):
            assert not fits(with_replicas(spec, found[1], int(found[2]) + 1))


def test_two_pools_cost_what_their_machines_cost() -> None:
    spec, _ = SHORT["both zones short"]
    assert refused(spec).ways[-1].per_hour == 2 * 2.5 + 2 * 4


def test_what_fits_only_after_moves_is_told_so() -> None:
    """Two of 30 GB, one on each device: 50 GB fit on neither until one of them moves."""
    small = fleet({"gpu": shared(2)}, {"s": model(30, scaling=replicas(2), spread={"nodes": 2})})
    apart = planned(small)
    assert len(apart.packing.used) == 2
    models = {"s": model(30, scaling=replicas(2)), "l": model(60)}
    error = refused(fleet({"gpu": shared(2)}, models), previous=apart.cells)
    assert error.moving_helps
    assert "`--defrag` moves a few of them" in str(error)


def test_without_any_machine_the_answer_is_still_a_sentence() -> None:
    error = refused(figure_7(), lost=frozenset({"h100-0", "h100-1", "h100-2"}))
    assert "there is no machine" in str(error)
    assert [way.text for way in error.ways] == ["4 more machines in pool h100"]


def test_a_cheap_machine_in_each_pool_beats_many_in_the_dear_one() -> None:
    pools = {"x": shared(1, price_per_hour=10), "y": shared(1, price_per_hour=1)}
    models = {
        "x-only": model(60, "x", scaling=replicas(2)),
        "both": model(60, "x", "y", scaling=replicas(2)),
    }
    ways = refused(fleet(pools, models)).ways
    machines = [way for way in ways if "more machine" in way.text]

    assert machines[0].text == "1 more machine in pool x and 1 more machine in pool y"
    assert machines[0].per_hour == 11


def test_a_way_that_only_works_by_packing_anew_says_so() -> None:
    """Two of 30 GB on two devices: after one more machine two of 60 GB need them moved."""
    small = fleet({"gpu": shared(2)}, {"s": model(30, scaling=replicas(2), spread={"nodes": 2})})
    apart = planned(small)
    models = {"s": model(30, scaling=replicas(2)), "l": model(60, scaling=replicas(2))}
    error = refused(fleet({"gpu": shared(2)}, models), previous=apart.cells)

    (machine,) = [way for way in error.ways if "more machine" in way.text]
    assert machine.anew
    assert "`--fresh` or `--defrag`" in str(machine)


def test_what_no_solver_decided_is_not_called_impossible() -> None:
    spec = fleet(
        {"a": shared(50, zone="a"), "b": shared(51, zone="b")},
        {
            "m": model(50, "a", scaling=replicas(51)),
            "s": model(1, "b", scaling=replicas(300)),
        },
    )
    assert "not proved impossible" in str(refused(spec))
