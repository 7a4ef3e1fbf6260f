"""Independent runs, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")


def run_all(runs: Sequence[Callable[[], T]], done: Callable[[], None]) -> list[T]:
    """What each gives, in their order. They must pickle. `done` is called after each."""
    # Spawned: a fork would copy the locks that other threads of the caller hold.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run) for run in runs]
        for _ in as_completed(futures):
            done()
        return [future.result() for future in futures]
