from placement.grouped import NO_LIMIT, Kind, Type
from placement.sums import least_price

SMALL = Kind("small", (40, 20), 10, 5)
LARGE = Kind("large", (80, 20), 16, 5)


def test_the_scarcer_dimension_decides() -> None:
    types = [Type(((10, 2),), NO_LIMIT, 8), Type(((10, 8),), NO_LIMIT, 3)]

    # 110 of 40 memory and 40 of 20 compute, at 10 a place.
    assert least_price([SMALL], types) == 28


def test_each_replica_pays_where_its_share_costs_least() -> None:
    types = [Type(((20, 1), (20, 1)), NO_LIMIT, 4)]

    # A quarter of the large place costs 4, half of the small one 5.
    assert least_price([SMALL, LARGE], types) == 16
