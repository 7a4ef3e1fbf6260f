"""A clock that stands still while its process does."""

from cluster.awake import LATE_S, TICK_S, AwakeClock


def test_a_pause_counts_as_one_tick() -> None:
    now = 1000.0
    clock = AwakeClock(lambda: now)
    for _ in range(10):
        now += TICK_S
        clock.now()
    assert clock.now() == 10 * TICK_S
    now += 3600.0
    assert clock.now() == 11 * TICK_S
    now += LATE_S - 1
    assert clock.now() == 11 * TICK_S + LATE_S - 1
