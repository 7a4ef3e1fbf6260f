"""The seed's arithmetic: what must be there so that the loss of a zone costs nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.fleet import Scaling, Spread
from placement.demand import Demand, after_a_loss, demand_of


@pytest.mark.parametrize(
    ("zones", "most", "least", "per_zone"), [(3, 15, 6, 5), (2, 20, 8, 10), (6, 12, 6, 2)]
)
def test_ten_replicas_after_the_loss_of_a_zone(
    zones: int, most: int, least: int, per_zone: int
) -> None:
    scaling = Scaling(min_replicas=4, max_replicas=10)
    demand = demand_of(scaling, Spread(zones=zones, survive="zone"))
    assert demand == Demand(most, least, per_host=None, per_zone=per_zone)


def test_machines_likewise() -> None:
    demand = demand_of(Scaling(max_replicas=10), Spread(nodes=3, survive="node"))
    assert demand == Demand(15, 3, per_host=5)


def test_a_spread_without_spares_only_caps() -> None:
    demand = demand_of(Scaling(max_replicas=10), Spread(zones=3, nodes=4))
    assert demand == Demand(10, 1, per_host=3, per_zone=4)


def test_spare_replicas_are_not_asked_for_once_their_zone_has_gone() -> None:
    scaling, spread = Scaling(min_replicas=4, max_replicas=10), Spread(zones=3, survive="zone")
    demand = demand_of(scaling, spread)
    assert after_a_loss(demand, scaling, spread, 2, 9) == Demand(10, 4, per_zone=5)
    assert after_a_loss(demand, scaling, spread, 1, 9) == Demand(10, 4, per_zone=10)
    assert after_a_loss(demand, scaling, spread, 3, 9) == demand


@given(st.integers(1, 60), st.integers(2, 6))
def test_any_zone_may_go(most: int, zones: int) -> None:
    demand = demand_of(Scaling(max_replicas=most), Spread(zones=zones, survive="zone"))
    assert demand.per_zone is not None
    assert demand.replicas - demand.per_zone >= most
    assert demand.per_zone * zones == demand.replicas
