"""An ingress's look at the placement: at most once a period, and never in a scrape's way."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from deployments import placement_watch
from deployments.placement_watch import PERIOD_S, PlacementWatch, figures_of
from modelyard.control.reading import Reading
from placement.pending import Pending, Reason
from placement.verify import Mismatch, Wrong
from placement.watched import Placement

READING = Reading((), (), (), None, None, 1.0)
WRONG = Mismatch("gen@1.0.0", "r1", Wrong.PLACE, "is at d1")
FOUND = Placement((WRONG,), (), 7, 6)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def waits(replica: str, waited_s: float) -> Pending:
    return Pending("emb@1.0.0", replica, "d0", Reason.FULL, "full", waited_s, True)


def test_figures_name_every_kind_and_the_longest_wait() -> None:
    placement = Placement((WRONG, WRONG), (waits("r1", 3.0), waits("r2", 9.0)), 7, 6)
    figures = figures_of(placement)
    assert set(figures.mismatches) == {kind.value for kind in Wrong}
    assert figures.mismatches["wrong_place"] == 2
    assert figures.mismatches["missing"] == 0
    assert figures.pending_s == {("emb@1.0.0", "full"): 9.0}
    assert (figures.planned, figures.used) == (7, 6)


async def test_it_reads_once_a_period() -> None:
    clock, reads = Clock(), []

    def read(reading: Reading) -> Placement:
        reads.append(reading)
        return FOUND

    watch = PlacementWatch(read, clock)
    for _ in range(3):
        assert await watch.figures(READING) == figures_of(FOUND)
    assert len(reads) == 1
    clock.now_s += PERIOD_S
    await watch.figures(READING)
    assert len(reads) == 2


@pytest.mark.parametrize("error", [RuntimeError("no Ray"), None])
async def test_what_cannot_be_read_or_was_never_placed_is_no_figure(
    error: Exception | None,
) -> None:
    clock = Clock()
    answers: list[Callable[[], Placement | None]] = [lambda: FOUND]

    def read(_: Reading) -> Placement | None:
        return answers[0]()

    def fail() -> None:
        if error is not None:
            raise error

    watch = PlacementWatch(read, clock)
    assert await watch.figures(READING) is not None
    answers[0] = fail
    clock.now_s += PERIOD_S
    assert await watch.figures(READING) is None


async def test_a_reading_that_hangs_holds_nothing_up_and_is_not_begun_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placement_watch, "WITHIN_S", 0.01)
    clock, begun, release = Clock(), [], threading.Event()

    def read(_: Reading) -> Placement:
        begun.append(1)
        release.wait(30)
        return FOUND

    watch = PlacementWatch(read, clock)
    try:
        assert await watch.figures(READING) is None
        clock.now_s += 2 * PERIOD_S
        assert await watch.figures(READING) is None
        assert len(begun) == 1
    finally:
        release.set()
    monkeypatch.setattr(placement_watch, "WITHIN_S", 30.0)
    assert await watch.figures(READING) == figures_of(FOUND)
