"""The watchdog: it never fires while anything moves, and always soon after nothing does."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import example, given
from hypothesis import strategies as st

from modelyard.lifecycle.watchdog import HARD_CAP, PERIOD_S, STEPS, Evidence, Watchdog

T = 10.0
LONG = st.floats(0, 30)


@dataclass
class Replica:
    """A replica under a watchdog, checked on time each second."""

    watchdog: Watchdog
    now: float = 0.0
    steps: int = 0
    cpu_s: float = 0.0
    knows_cpu: bool = True

    def second(
        self, *, busy: bool, steps: int = 0, cpu_s: float = 0.0, took_s: float = PERIOD_S
    ) -> str | None:
        self.now += took_s
        self.steps += steps
        self.cpu_s += cpu_s
        known = self.cpu_s if self.knows_cpu else None
        return self.watchdog.check(self.now, Evidence(self.steps, busy, known))

    def seconds_until_alarm(self, limit: int, *, cpu_s: float = 0.0) -> int:
        for count in range(1, limit + 1):
            if self.second(busy=True, cpu_s=cpu_s) is not None:
                return count
        return limit + 1


def watched(longest_step_s: float = 0.0, *, knows_cpu: bool = True) -> Replica:
    replica = Replica(Watchdog(T, longest_step_s), knows_cpu=knows_cpu)
    replica.second(busy=False)
    return replica


@given(st.lists(st.integers(0, int(T) - 1), max_size=30), st.booleans())
@example([9] * 20, False)
def test_no_alarm_while_any_sequence_moves(gaps_s: list[int], knows_cpu: bool) -> None:
    """Whichever it is: the others may wait for as long as they do."""
    replica = watched(knows_cpu=knows_cpu)
    for gap_s in gaps_s:
        for _ in range(gap_s):
            assert replica.second(busy=True) is None
        assert replica.second(busy=True, steps=1) is None


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=40),
    LONG,
    st.booleans(),
)
def test_an_alarm_within_the_allowance_and_a_period_once_nothing_moves(
    before: list[tuple[bool, int]], longest_step_s: float, knows_cpu: bool
) -> None:
    replica = watched(longest_step_s, knows_cpu=knows_cpu)
    for busy, steps in before:
        replica.second(busy=busy, steps=steps)
    replica.second(busy=True, steps=1)
    allowance_s = replica.watchdog.allowance_s
    took_s = replica.seconds_until_alarm(1000) * PERIOD_S
    assert allowance_s <= took_s < allowance_s + PERIOD_S


@given(st.integers(0, 400))
def test_an_idle_replica_is_never_stalled(idle_s: int) -> None:
    replica = watched()
    for _ in range(idle_s):
        assert replica.second(busy=False) is None


@given(st.integers(0, 400))
def test_the_first_step_counts_from_when_there_was_work(idle_s: int) -> None:
    replica = watched()
    for _ in range(idle_s):
        replica.second(busy=False)
    assert replica.seconds_until_alarm(100) == T


@given(LONG)
def test_the_longest_step_of_warm_up_extends_the_allowance(longest_step_s: float) -> None:
    watchdog = Watchdog(T, longest_step_s)
    assert watchdog.allowance_s >= min(STEPS * longest_step_s, HARD_CAP * T)
    assert T <= watchdog.allowance_s <= HARD_CAP * T


@given(st.integers(1, 8), st.integers(1, 20))
def test_callers_that_give_up_do_not_hide_a_hung_engine(deadline_s: int, pause_s: int) -> None:
    replica = watched()
    for _ in range(int(T)):
        alarms = [replica.second(busy=True) for _ in range(deadline_s)]
        if any(alarms):
            return
        assert not any(replica.second(busy=False) for _ in range(pause_s))
    raise AssertionError("never an alarm")


@given(st.floats(0.11, 2.0))
def test_an_engine_that_computes_is_not_stalled_before_the_hard_cap(cpu_share: float) -> None:
    """One long prefill on a slow CPU, perhaps on two cores shared by ten engines."""
    assert watched().seconds_until_alarm(1000, cpu_s=cpu_share) == HARD_CAP * T


def test_a_spinning_engine_proves_nothing_on_a_gpu() -> None:
    assert watched(knows_cpu=False).seconds_until_alarm(1000, cpu_s=1.0) == T


@given(st.integers(1, 60))
def test_a_stop_in_the_middle_of_a_prefill_counts_from_the_stop(computed_s: int) -> None:
    replica = watched()
    for _ in range(computed_s):
        assert replica.second(busy=True, cpu_s=1.0) is None
    assert replica.seconds_until_alarm(100) == T


@given(st.floats(2, 1e6))
def test_a_machine_that_slept_is_no_stall(slept_s: float) -> None:
    """Nobody computed, and nobody looked."""
    replica = watched()
    assert replica.second(busy=True) is None
    assert replica.second(busy=True, took_s=slept_s) is None
    assert replica.second(busy=True, steps=1) is None


def test_a_clock_that_goes_back_is_no_stall() -> None:
    replica = watched()
    assert replica.second(busy=True, took_s=-1e6) is None
    assert replica.seconds_until_alarm(100) == T


def test_the_words_say_for_how_long() -> None:
    replica = watched()
    for _ in range(9):
        replica.second(busy=True)
    assert replica.second(busy=True) == "busy for 10 s without a step"
