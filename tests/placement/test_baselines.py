import numpy as np

from placement.baselines import emptiest, first_fit, lexicographic_best, places_used
from placement.families import FAMILIES, instance
from placement.packing import pack


def test_each_chooses_by_its_own_rule() -> None:
    free = np.array([[40, 5], [60, 20], [50, 4], [45, 4]])

    assert first_fit(free) == 0
    assert emptiest(free) == 1
    assert lexicographic_best(free) == 3  # compute first, then memory


def test_a_place_is_opened_only_where_none_fits() -> None:
    assert places_used([(50, 1), (40, 1), (30, 1)], (80, 20), first_fit) == 2


def test_none_of_them_needs_fewer_places_than_our_packing() -> None:
    for family in FAMILIES:
        problem = instance(family, 150, 15, 2)
        needs = [item.needs["gpu"] for item in problem.items for _ in range(item.replicas)]
        ours = len(pack(problem).used)
        for choice in (first_fit, emptiest, lexicographic_best):
            assert ours <= places_used(needs, problem.places[0].size, choice)
