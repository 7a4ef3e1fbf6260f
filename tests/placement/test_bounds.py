from placement.bounds import bound, proved
from placement.families import instance
from placement.problem import Item, Place, Problem


def places(count: int, price: int = 1_000_000) -> tuple[Place, ...]:
    return tuple(
        Place(f"p{n}", "gpu", f"host-{n}", "ab"[n % 2], (80_000, 20), price, 1)
        for n in range(count)
    )


def test_what_cannot_pair_needs_a_place_each_whatever_the_sum_says() -> None:
    least = bound(Problem(places(5), (Item("large", 5, {"gpu": (41_000, 1)}),)))

    assert least.by["sum"] == 3_000_000
    assert least.by["lp"] == least.price == 5_000_000
    assert least.places == 5


def test_a_cap_per_host_needs_as_many_hosts() -> None:
    item = Item("chat", 9, {"gpu": (1_000, 1)}, per_host=2)
    least = bound(Problem(places(9), (item,)))

    assert least.by["spread"] == least.price == 5_000_000


def test_a_bound_without_the_relaxation_is_no_greater() -> None:
    problem = instance("half", 100, 10, 0)

    assert bound(problem, exact=False).price <= bound(problem).price
    assert "lp" not in bound(problem, exact=False).by


def test_it_is_raised_to_a_sum_of_prices() -> None:
    """Two replicas to a device of 10 or of 7: five pay 17.5 at least, and no sum of prices is
    above that and below 20."""
    kinds = (
        Place("a", "gpu", "a", "a", (80_000, 20), 10, 1),
        Place("b", "old", "b", "a", (40_000, 20), 7, 1),
    )
    least = bound(Problem(kinds, (Item("chat", 5, {"gpu": (30_000, 5), "old": (20_000, 5)}),)))

    assert least.price == 20
    assert proved(20, least)
    assert not proved(21, least)  # three of 7: the best there is, but this bound does not show it


def test_pools_that_share_no_model_are_rounded_up_each_by_itself() -> None:
    kinds = (*places(2), Place("cpu", "cpu", "cpu", "a", (16_000, 800), 1_000_000, 0))
    items = (Item("chat", 1, {"gpu": (1_000, 1)}), Item("embedder", 1, {"cpu": (1_000, 100)}))

    assert bound(Problem(kinds, items)).places == 2


def test_what_may_be_on_a_place_that_costs_nothing_may_cost_nothing() -> None:
    kinds = (*places(2), Place("cpu", "cpu", "cpu", "a", (16_000, 800), 0, 0))
    items = (
        Item("either", 1, {"gpu": (80_000, 20), "cpu": (16_000, 800)}),
        Item("gpu-only", 1, {"gpu": (1_000, 1)}),
    )
    least = bound(Problem(kinds, items))

    assert least.price == 1_000_000
    assert least.places == 2


def test_sizes_without_a_common_divisor_still_give_a_bound_that_holds() -> None:
    """Rounded down to steps of the grid: 3 x 26,667 MB is 80,001."""
    item = Item("chat", 9, {"gpu": (26_667, 1)})
    other = Item("odd", 3, {"gpu": (26_666, 1)})

    assert bound(Problem(places(12), (item, other))).places in (4, 5)
    assert bound(Problem(places(12), (other,))).places == 1
