from placement.online_benchmark import measured
from placement.turnover import best_fit


def test_a_fleet_is_measured_before_and_after_its_turnover() -> None:
    arrived, turned_over = measured("uniform", 20, 4, 0, best_fit)

    assert arrived >= 0
    assert turned_over >= 0
