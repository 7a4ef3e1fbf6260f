from contextlib import ExitStack
from dataclasses import replace
from random import Random

import pytest

from modelyard.lifecycle.report import Post
from modelyard.routing.cells import InFlight, candidate_of, pick_cell
from modelyard.routing.choose import Candidate
from modelyard.routing.fleet import Fleet
from modelyard.routing.pool import Cell
from modelyard.testing.in_memory import SLOTS, post

APPS = ["gen@1", *(f"gen@1--{letter}" for letter in "bcdef")]


def ready(app: str, ongoing: int = 0, *, replica: str = "r1", age_s: float = 0.1) -> Post:
    made = post(app, age_s=age_s)
    return Post(replace(made.report, ongoing=ongoing, replica=replica), made.age_s)


def fleet_of(*posts: Post) -> Fleet:
    fleet = Fleet()
    fleet.update(posts)
    return fleet


SIX = fleet_of(*(ready(app) for app in APPS))
POOL = SIX.pool("gen@1")


def pick(key: str, fleet: Fleet = SIX, *, tried: tuple[Cell, ...] = (), seed: int = 0) -> Cell:
    return pick_cell(fleet.pool("gen@1"), key, fleet, InFlight(), Random(seed), tried)


def test_a_key_has_its_cell_and_keys_are_spread() -> None:
    assert {pick("k", seed=n) for n in range(20)} == {pick("k")}
    assert {pick(f"k{n}").app for n in range(100)} == set(APPS)


def test_a_version_of_one_cell_has_no_choice() -> None:
    assert pick("k", fleet_of(ready("gen@1"))) == Cell("gen@1", "Generator")


def test_a_second_attempt_goes_to_another_cell_while_there_is_one() -> None:
    first = pick("k")
    assert pick("k", tried=(first,)) != first
    assert pick("k", tried=POOL.cells) == first


def test_a_busy_cell_is_passed_by_whoever_keeps_it_busy() -> None:
    first = pick("k")
    others = fleet_of(*(ready(app, 20 if app == first.app else 0) for app in APPS))
    assert pick("k", others) != first
    mine = InFlight()
    with ExitStack() as requests:
        for _ in range(20):
            requests.enter_context(mine.at(first))
        assert pick_cell(POOL, "k", SIX, mine, Random(0)) != first


def test_a_cell_weighs_as_much_as_its_replicas() -> None:
    two = fleet_of(
        ready("gen@1", 3, age_s=2), ready("gen@1", 4, replica="r2", age_s=1), ready("gen@1--b")
    )
    cell = two.pool("gen@1").cells[0]
    assert candidate_of(cell, two, InFlight()) == Candidate("gen@1", 7, 2 * SLOTS, 1)


def test_what_is_in_flight_is_counted_while_it_is() -> None:
    counts, cell = InFlight(), POOL.cells[0]
    with counts.at(cell), counts.at(cell):
        assert counts.of(cell) == 2
    with pytest.raises(RuntimeError), counts.at(cell):
        raise RuntimeError
    assert counts.of(cell) == 0
