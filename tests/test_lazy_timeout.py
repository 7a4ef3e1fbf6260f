from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.lazy_timeout import LazyTimeout
from modelyard.testing.virtual_time import run_virtual

waits = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=20)


@given(waits)
def test_each_wait_ends_by_itself_or_when_its_own_time_is_up(steps: list[tuple[int, int]]) -> None:
    """Whatever the earlier waits were bounded by: the one timer must never ring late or early."""

    async def main() -> None:
        timeout, now = LazyTimeout(), asyncio.get_running_loop().time
        for length_s, limit_s in steps:
            if length_s == limit_s:
                continue  # which comes first is the loop's business
            began = now()
            try:
                with timeout.within(limit_s):
                    await asyncio.sleep(length_s)
                assert (length_s < limit_s, now() - began) == (True, length_s)
            except TimeoutError:
                assert (length_s > limit_s, now() - began) == (True, limit_s)

    run_virtual(main())


def test_time_between_two_waits_counts_for_none() -> None:
    async def main() -> None:
        timeout = LazyTimeout()
        for _ in range(3):
            with timeout.within(1):
                await asyncio.sleep(0.5)
            await asyncio.sleep(30)

    run_virtual(main())


@pytest.mark.parametrize("at_s", [0.5, 1.0])
def test_a_cancellation_from_outside_stays_one(at_s: float) -> None:
    """Also when it comes in the instant at which the time is up."""

    async def waiting() -> None:
        with LazyTimeout().within(1):
            await asyncio.sleep(10)

    async def main() -> None:
        task = asyncio.create_task(waiting())
        asyncio.get_running_loop().call_at(at_s, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main())


def test_an_error_of_the_wait_passes() -> None:
    async def main() -> None:
        timeout = LazyTimeout()
        with pytest.raises(LookupError), timeout.within(1):
            raise LookupError
        with timeout.within(5):
            await asyncio.sleep(2)

    run_virtual(main())


def test_many_waits_set_one_timer() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        set_for: list[float] = []
        real = loop.call_at

        def counted(when: float, *rest: object, **named: object) -> asyncio.TimerHandle:
            if when >= 10:
                set_for.append(when)
            return real(when, *rest, **named)  # type: ignore[arg-type]

        loop.call_at = counted  # type: ignore[method-assign]
        timeout = LazyTimeout()
        for _ in range(1000):
            with timeout.within(15):
                await asyncio.sleep(0.001)
        return len(set_for)

    assert run_virtual(main()) == 1


def test_a_closed_one_leaves_no_timer_and_may_be_used_again() -> None:
    async def main() -> None:
        timeout = LazyTimeout()
        with timeout.within(100):
            await asyncio.sleep(1)
        left = timeout._timer
        timeout.close()
        assert left is not None
        assert left.cancelled()
        with pytest.raises(TimeoutError), timeout.within(200):
            await asyncio.sleep(1000)
        assert asyncio.get_running_loop().time() == 201

    run_virtual(main())
