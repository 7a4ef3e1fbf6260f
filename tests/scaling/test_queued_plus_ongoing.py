import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.scaling.queued_plus_ongoing import desired_replicas

LOAD = st.integers(0, 10**6)
TARGET = st.integers(1, 1000)


def test_what_waits_counts_as_much_as_what_runs() -> None:
    assert desired_replicas(queued=0, ongoing=160, target_ongoing_requests=20) == 8
    assert desired_replicas(queued=60, ongoing=160, target_ongoing_requests=20) == 11


def test_no_load_needs_no_replica_and_any_load_needs_one() -> None:
    assert desired_replicas(0, 0, 24) == 0
    assert desired_replicas(1, 0, 24) == 1
    assert desired_replicas(0.01, 0, 24) == 1


@given(queued=LOAD, ongoing=LOAD, target=TARGET)
def test_no_replica_holds_more_than_the_target_and_none_is_spare(
    queued: int, ongoing: int, target: int
) -> None:
    replicas = desired_replicas(queued, ongoing, target)
    assert replicas * target >= queued + ongoing
    assert (replicas - 1) * target < queued + ongoing


@given(queued=LOAD, ongoing=LOAD, target=TARGET, more=LOAD)
def test_more_load_never_needs_fewer(queued: int, ongoing: int, target: int, more: int) -> None:
    assert desired_replicas(queued + more, ongoing, target) >= desired_replicas(
        queued, ongoing, target
    )


@pytest.mark.parametrize("target", [0, -1, -0.5])
def test_a_target_must_be_positive(target: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        desired_replicas(1, 1, target)
