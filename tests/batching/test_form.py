"""The choice of a batch."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.batching.form import Waiting, form_batch

QUEUES = st.lists(st.integers(1, 300), max_size=60).map(
    lambda lengths: [Waiting(order, tokens) for order, tokens in enumerate(lengths)]
)
NO_PADDING_RULE = 10**9


@settings(deadline=None)  # the machine may be busy
@given(QUEUES, st.randoms(), st.integers(1, 40), st.integers(1, 4000), st.integers(0, 200))
def test_the_oldest_is_in_the_bounds_hold_and_nothing_is_invented(
    queue: list[Waiting], random: object, size: int, tokens: int, start_cost: int
) -> None:
    random.shuffle(queue)  # type: ignore[attr-defined]  # the order of the sequence must not matter
    batch = form_batch(queue, size, tokens, start_cost)
    assert bool(batch) == bool(queue)
    if queue:
        assert min(queue) in batch
    assert len(set(batch)) == len(batch) <= size
    assert set(batch) <= set(queue)
    padded = max((one.tokens for one in batch), default=0) * len(batch)
    assert padded <= tokens or len(batch) == 1


@settings(deadline=None)  # the machine may be busy
@given(QUEUES, st.integers(1, 40), st.integers(1, 4000))
def test_taking_batch_after_batch_empties_the_queue_once(
    queue: list[Waiting], size: int, tokens: int
) -> None:
    left, taken = list(queue), []
    while left:
        batch = form_batch(left, size, tokens)
        taken += batch
        left = [one for one in left if one not in batch]
    assert sorted(taken) == queue


@settings(deadline=None)  # the machine may be busy
@given(QUEUES, st.integers(1, 40))
def test_a_batch_is_the_nearest_in_length_when_nothing_else_bounds_it(
    queue: list[Waiting], size: int
) -> None:
    batch = form_batch(queue, size, 10**9, NO_PADDING_RULE)
    if not queue:
        return
    pivot = min(queue).tokens
    farthest = max(abs(one.tokens - pivot) for one in batch)
    assert all(abs(one.tokens - pivot) >= farthest for one in queue if one not in batch)


def test_an_input_longer_than_the_budget_runs_alone() -> None:
    queue = [Waiting(0, 500), Waiting(1, 500), Waiting(2, 3)]
    assert form_batch(queue, 32, 100) == [Waiting(0, 500)]


def test_among_equal_lengths_the_older_go_first() -> None:
    queue = [Waiting(order, 10) for order in range(5)]
    assert form_batch(queue, 3, 1000) == queue[:3]


def test_short_inputs_are_not_padded_to_one_long_neighbour() -> None:
    short = [Waiting(order, 10) for order in range(31)]
    assert form_batch([*short, Waiting(31, 256)], 32, 8192) == short
