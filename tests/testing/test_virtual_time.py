import asyncio
import time

import pytest

from modelyard.testing.virtual_time import Stuck, run_virtual


def clock_s() -> float:
    return asyncio.get_running_loop().time()


def test_an_hour_of_sleep_takes_no_time() -> None:
    async def sleeper() -> float:
        await asyncio.sleep(3600)
        return clock_s()

    before = time.monotonic()
    assert run_virtual(sleeper()) == 3600
    assert time.monotonic() - before < 1


def test_timers_fire_in_order_and_the_clock_stands_while_tasks_run() -> None:
    async def main() -> list[tuple[str, float]]:
        seen: list[tuple[str, float]] = []

        async def after(seconds: float, name: str) -> None:
            await asyncio.sleep(seconds)
            seen.append((name, clock_s()))

        await asyncio.gather(after(60, "late"), after(0.5, "soon"), after(0, "now"))
        return seen

    assert run_virtual(main()) == [("now", 0.0), ("soon", 0.5), ("late", 60.0)]


def test_a_timeout_is_exact() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(15):
                await asyncio.Event().wait()
        return clock_s()

    assert run_virtual(main()) == 15


def test_what_can_never_go_on_is_an_error_and_not_a_hang() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run_virtual(main())


def test_a_result_of_another_thread_arrives() -> None:
    async def main() -> int:
        return await asyncio.to_thread(lambda: 5)

    assert run_virtual(main()) == 5


def test_an_error_comes_out_and_what_still_ran_is_cancelled() -> None:
    ended: list[str] = []

    async def other() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append("other")

    async def main() -> None:
        task = asyncio.create_task(other())
        await asyncio.sleep(1)
        raise LookupError(task.get_name())

    with pytest.raises(LookupError):
        run_virtual(main())
    assert ended == ["other"]
