"""The batcher: batches on one thread, and each caller gets exactly its own result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.batching.batcher import Batcher, BatchStatistics
from modelyard.config.tunables import BatchTunables
from modelyard.contract.errors import Internal, InvalidRequest


class Model:
    """Doubles each input. Can be held, so that a test decides when a batch ends."""

    def __init__(self, poison: frozenset[int] = frozenset(), *, held: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.threads: set[str] = set()
        self.poison = poison
        self.started = asyncio.Event()
        self.go = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._alone = threading.Lock()
        if not held:
            self.go.set()

    def __call__(self, batch: Sequence[int]) -> list[int | Exception]:
        assert self._alone.acquire(blocking=False), "two batches at once"
        try:
            self.threads.add(threading.current_thread().name)
            self.batches.append(list(batch))
            self._loop.call_soon_threadsafe(self.started.set)
            assert self.go.wait(timeout=10)
            if self.poison & set(batch):
                raise ValueError("a poisoned batch")
            return [2 * one for one in batch]
        finally:
            self._alone.release()


async def test_inputs_that_arrive_together_run_together_off_the_loop() -> None:
    model = Model()
    batcher = Batcher(model, BatchTunables())
    results = await asyncio.gather(*(batcher.submit(number, 4) for number in range(10)))
    assert results == [2 * number for number in range(10)]
    assert model.batches == [list(range(10))]
    assert threading.current_thread().name not in model.threads
    assert batcher.statistics() == BatchStatistics(waiting=0, running=0, batches=1, items=10)


async def test_what_arrives_during_a_batch_waits_for_the_next() -> None:
    model = Model(held=True)
    batcher = Batcher(model, BatchTunables())
    first = asyncio.create_task(batcher.submit(1, 4))
    await model.started.wait()
    rest = asyncio.gather(*(batcher.submit(number, 4) for number in (2, 3)))
    await asyncio.sleep(0)
    assert batcher.statistics() == BatchStatistics(waiting=2, running=1, batches=0, items=0)
    model.go.set()
    assert (await first, await rest) == (2, [4, 6])
    assert model.batches == [[1], [2, 3]]


async def test_one_bad_input_of_a_failing_batch_fails_alone() -> None:
    model = Model(frozenset({2}))
    batcher = Batcher(model, BatchTunables())
    results = await asyncio.gather(
        *(batcher.submit(number, 4) for number in (1, 2, 3)), return_exceptions=True
    )
    assert results[0] == 2
    assert isinstance(results[1], ValueError)
    assert results[2] == 6
    assert model.batches == [[1, 2, 3], [1], [2], [3]]


async def test_a_failing_input_alone_is_not_run_twice() -> None:
    model = Model(frozenset({2}))
    with pytest.raises(ValueError, match="poisoned"):
        await Batcher(model, BatchTunables()).submit(2, 4)
    assert model.batches == [[2]]


async def test_an_exception_in_the_results_reaches_its_caller_only() -> None:
    def odd_is_refused(batch: Sequence[int]) -> list[int | Exception]:
        return [InvalidRequest(f"{one} is odd") if one % 2 else one for one in batch]

    batcher = Batcher(odd_is_refused, BatchTunables())
    good = asyncio.create_task(batcher.submit(2, 1))
    with pytest.raises(InvalidRequest, match=r"^3 is odd"):
        await batcher.submit(3, 1)
    assert await good == 2


async def test_a_request_fails_with_the_index_of_its_bad_input() -> None:
    def odd_is_refused(batch: Sequence[int]) -> list[int | Exception]:
        return [InvalidRequest("odd", param="input") if one % 2 else one for one in batch]

    batcher = Batcher(odd_is_refused, BatchTunables(max_batch_size=2))
    with pytest.raises(InvalidRequest, match=r"^input 2: odd") as caught:
        await batcher.submit_all([(number, 1) for number in (2, 4, 5, 6, 8)])
    assert caught.value.param == "input"
    assert batcher.statistics().waiting == 0  # 8 left the queue


async def test_an_unforeseen_error_of_a_request_carries_the_index_as_a_note() -> None:
    batcher = Batcher(Model(frozenset({7})), BatchTunables())
    with pytest.raises(ValueError, match="poisoned") as caught:
        await batcher.submit_all([(6, 1), (7, 1)], "text")
    assert caught.value.__notes__ == ["text 1"]


async def test_a_request_gets_its_results_in_its_own_order() -> None:
    batcher = Batcher(Model(), BatchTunables(max_batch_size=3))
    lengths = [9, 1, 200, 30, 2, 180, 40]
    results = await batcher.submit_all(list(enumerate(lengths)))
    assert results == [2 * index for index in range(len(lengths))]


async def test_a_cancelled_caller_leaves_the_queue_before_it_is_batched() -> None:
    model = Model(held=True)
    batcher = Batcher(model, BatchTunables())
    first = asyncio.create_task(batcher.submit(1, 4))
    await model.started.wait()
    gone, stays = (asyncio.create_task(batcher.submit(number, 4)) for number in (2, 3))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])
    assert batcher.statistics().waiting == 1
    model.go.set()
    assert (await first, await stays) == (2, 6)
    assert model.batches == [[1], [3]]


async def test_an_abandoned_batch_keeps_its_slot_until_it_really_ends() -> None:
    model = Model(held=True)
    batcher = Batcher(model, BatchTunables())
    gone = asyncio.create_task(batcher.submit(1, 4))
    await model.started.wait()
    gone.cancel()
    after = asyncio.create_task(batcher.submit(2, 4))
    await turns()
    gone.cancel()  # its deadline, after its caller left
    await turns()
    assert not gone.done()
    assert batcher.statistics().running == 1
    assert model.batches == [[1]]
    model.go.set()
    assert await after == 4  # Model itself asserts that the two never overlapped
    assert gone.cancelled()


async def test_a_request_that_times_out_is_held_only_for_what_is_being_computed() -> None:
    model = Model(held=True)
    batcher = Batcher(model, BatchTunables(max_batch_size=2))

    async def timed() -> None:
        async with asyncio.timeout(0):
            await batcher.submit_all([(number, 4) for number in (1, 2, 3)])

    first = asyncio.create_task(batcher.submit_all([(7, 4), (8, 4)]))
    await model.started.wait()
    with pytest.raises(TimeoutError):  # all of it waited
        await timed()
    both = asyncio.create_task(batcher.submit_all([(4, 4), (5, 4), (6, 4)]))
    await turns()
    assert batcher.statistics().waiting == 3
    model.go.set()
    assert (await first, await both) == ([14, 16], [8, 10, 12])
    assert model.batches == [[7, 8], [4, 5], [6]]


async def test_a_request_in_two_batches_is_out_of_the_queue_at_once() -> None:
    model = Model(held=True)
    batcher = Batcher(model, BatchTunables(max_batch_size=2))
    gone = asyncio.create_task(batcher.submit_all([(number, 4) for number in (1, 2, 3)]))
    await model.started.wait()
    gone.cancel()
    await turns()
    assert not gone.done()
    assert batcher.statistics() == BatchStatistics(waiting=0, running=2, batches=0, items=0)
    model.go.set()
    await asyncio.wait([gone])
    assert model.batches == [[1, 2]]


async def turns() -> None:
    """Let everything that can run do so."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_wrong_number_of_results_is_our_fault() -> None:
    def forgetful(batch: Sequence[int]) -> list[int | Exception]:
        return []

    with pytest.raises(Internal, match="0 results for 1 inputs"):
        await Batcher(forgetful, BatchTunables()).submit(1, 1)


async def test_new_tunables_hold_from_the_next_batch_on() -> None:
    model = Model()
    batcher = Batcher(model, BatchTunables())
    batcher.reconfigure(BatchTunables(max_batch_size=2))
    await batcher.submit_all([(number, 4) for number in range(5)])
    assert [len(batch) for batch in model.batches] == [2, 2, 1]


async def test_a_full_batch_does_not_wait_for_company() -> None:
    model = Model()
    batcher = Batcher(model, BatchTunables(max_batch_size=2, max_wait_ms=1000))
    async with asyncio.timeout(0.9):
        assert await batcher.submit_all([(1, 4), (2, 4)]) == [2, 4]


async def test_a_waiting_input_is_let_go_when_the_wait_is_taken_away() -> None:
    batcher = Batcher(Model(), BatchTunables(max_wait_ms=1000))
    waiting = asyncio.create_task(batcher.submit(1, 4))
    for _ in range(3):
        await asyncio.sleep(0)
    assert batcher.statistics().waiting == 1
    batcher.reconfigure(BatchTunables())
    async with asyncio.timeout(0.9):
        assert await waiting == 2


async def test_an_input_alone_runs_when_its_wait_is_over() -> None:
    assert await Batcher(Model(), BatchTunables(max_wait_ms=1)).submit(1, 4) == 2


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(1, 300)),
        st.tuples(st.just("cancel"), st.integers(0, 30)),
        st.tuples(st.just("turn"), st.integers(1, 3)),
    ),
    max_size=40,
)


@settings(deadline=None)  # the machine may be busy
@given(STEPS, st.frozensets(st.integers(0, 40), max_size=3), st.integers(1, 8))
def test_every_input_resolves_exactly_once_whatever_is_cancelled(
    steps: list[tuple[str, int]], poison: frozenset[int], size: int
) -> None:
    async def run() -> None:
        model = Model(poison)
        batcher = Batcher(model, BatchTunables(max_batch_size=size, max_batch_tokens=600))
        tasks: list[asyncio.Task[int]] = []
        for step, number in steps:
            if step == "submit":
                tasks.append(asyncio.create_task(batcher.submit(len(tasks), number)))
            elif step == "cancel" and number < len(tasks):
                tasks[number].cancel()
            for _ in range(number if step == "turn" else 0):
                await asyncio.sleep(0)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for index, result in enumerate(results):
            if isinstance(result, ValueError):
                assert index in poison
            elif not isinstance(result, asyncio.CancelledError):
                assert result == 2 * index
                assert index not in poison
        # A batch whose callers have all gone may still run: wait for a last one behind it.
        await batcher.submit(1000, 1)
        clean = [one for batch in model.batches for one in batch if not poison & set(batch)]
        assert len(clean) == len(set(clean))
        assert batcher.statistics().waiting == 0

    asyncio.run(run())
