from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from modelyard.lifecycle.progress import Progress


def test_a_batch_is_one_step_when_it_ends() -> None:
    progress = Progress()

    def compute(batch: Sequence[int]) -> list[int]:
        assert progress.steps == 0
        return [2 * one for one in batch]

    assert progress.counted(compute)([1, 2]) == [2, 4]
    assert (progress.steps, progress.thread) == (1, threading.get_ident())


def test_a_batch_that_fails_is_a_step_too() -> None:
    """It did not hang."""
    progress = Progress()

    def compute(batch: Sequence[int]) -> list[int]:
        raise ValueError("a bad batch")

    with pytest.raises(ValueError, match="a bad batch"):
        progress.counted(compute)([1])
    assert progress.steps == 1


def test_the_longest_step_is_of_those_that_were_measured() -> None:
    seconds = iter([0.0, 3.0, 4.0, 10.0, 10.5])
    progress = Progress(lambda: next(seconds))
    progress.step()
    with progress.measured():
        progress.step()
        progress.step()
    progress.step()
    assert progress.longest_step_s == 3.0
    with progress.measured():
        progress.step()
    assert (progress.longest_step_s, progress.steps) == (3.0, 5)
