"""Steps carried out on a platform that lives in memory, on a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from placement.cells import cells_of_packing
from placement.demand import Demand
from placement.fleet_problem import FleetProblem
from placement.guard import Load
from placement.move import Move
from placement.mover import LOOKS, MOST_LOST, Mover
from placement.moving import MoveStopped, Pace, Unseen
from placement.plan import Cell
from placement.problem import Item, Packing, Place, Placed, Problem
from placement.steps import Step, steps
from placement.unfinished import settled

PLACES = tuple(Place(f"g{n}", "gpu", f"h{n}", "a", (80, 20), 1, 1) for n in range(4))
ITEMS = (Item("m@1", 2, {"gpu": (30, 1)}), Item("n@1", 1, {"gpu": (50, 1)}))
ASKED = FleetProblem(Problem(PLACES, ITEMS), {"m@1": Demand(2, 2), "n@1": Demand(1, 1)}, {})
BEFORE = Packing((Placed("m@1", "g0", 1), Placed("m@1", "g1", 1), Placed("n@1", "g2", 1)))
CELLS = cells_of_packing(ASKED, BEFORE)
MOVES = [Move("m@1", "g1", "g2", 1), Move("m@1", "g0", "g3", 1)]
STEPS = steps(ASKED, BEFORE, CELLS, MOVES)
QUICK = Pace(ready_within_s=30, drain_within_s=20, pause_s=10)


@dataclass
class FakePlatform:
    """A cell is ready `start_s` after it was deployed; a drained one is idle after `work_s`."""

    start_s: float = 5.0
    work_s: float = 8.0
    clock_s: float = 0.0
    cells: tuple[Cell, ...] = CELLS
    born: dict[str, float] = field(default_factory=dict)
    drains: dict[str, float] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    loads: Callable[[float], Load] = lambda _: Load()
    calls: int = 0
    dies_at: int | None = None
    scaled_down: bool = False
    unseen: Callable[[float], bool] = lambda _: False

    def __post_init__(self) -> None:
        self.born = {cell.app: -1000.0 for cell in self.cells}

    def sleep(self, seconds: float) -> None:
        self.clock_s += seconds

    def _call(self, words: str = "") -> None:
        self.calls += 1
        if self.calls == self.dies_at:
            raise KeyboardInterrupt
        if words:
            self.log.append(words)
        self._require_service()

    def _require_service(self) -> None:
        """Whatever happens, two replicas of m serve, neither drained nor starting."""
        open_ = {app: n for app, n in self._ready().items() if app not in self.drains}
        least = 1 if self.scaled_down else 2
        assert sum(n for app, n in open_.items() if app.startswith("m@1")) >= least

    def _ready(self) -> dict[str, int]:
        ready: dict[str, int] = {}
        for cell in self.cells:
            up = self.clock_s - self.born[cell.app] >= self.start_s and cell.app not in self.broken
            most = cell.min_replicas if self.scaled_down else cell.replicas
            ready[cell.app] = most if up else 0
        return ready

    def _look(self) -> None:
        self._call()
        if self.unseen(self.clock_s):
            raise Unseen("the cluster does not answer")

    def deploy(self, cells: tuple[Cell, ...], packing: Packing) -> None:
        names = [cell.app for cell in cells]
        self._call(f"deploy {' '.join(names)}")
        self.born = {app: self.born.get(app, self.clock_s) for app in names}
        self.cells = cells

    def ready(self) -> dict[str, int]:
        self._look()
        return self._ready()

    def ongoing(self, app: str) -> int | None:
        self._look()
        if app not in self.drains:
            return None
        return int(self.clock_s < self.drains[app] + self.work_s)

    def drain(self, app: str, for_s: float) -> None:
        self._call(f"drain {app}")
        self.drains[app] = self.clock_s

    def end_drain(self, app: str) -> None:
        self._call(f"end {app}")
        self.drains.pop(app, None)

    def failure(self, app: str) -> str:
        self._look()
        return "out of memory" if app in self.broken else ""

    def load(self) -> Load:
        self._call()
        return self.loads(self.clock_s)


def mover(platform: FakePlatform, told: list[str] | None = None, pace: Pace = QUICK) -> Mover:
    tell = (told if told is not None else []).append
    return Mover(platform, pace, tell, lambda: platform.clock_s, platform.sleep)


def run(platform: FakePlatform, made: tuple[Step, ...] = STEPS) -> int:
    return mover(platform).run(made, CELLS, BEFORE)


def test_each_batch_adds_shifts_drains_and_drops() -> None:
    platform = FakePlatform()
    assert run(platform) == 2
    assert platform.log == [
        "deploy m@1 m@1--b m@1--c n@1",
        "drain m@1--b",
        "deploy m@1 m@1--c n@1",
        "end m@1--b",
        "deploy m@1 m@1--b m@1--c n@1",
        "drain m@1",
        "deploy m@1--b m@1--c n@1",
        "end m@1",
    ]
    assert platform.drains == {}
    assert platform.cells == STEPS[-1].cells


def test_the_old_cell_goes_only_when_it_is_idle() -> None:
    quick, slow = FakePlatform(work_s=0), FakePlatform(work_s=15)
    run(quick)
    run(slow)
    assert slow.clock_s - quick.clock_s == 2 * 15


def test_a_stream_that_does_not_end_is_left_to_serves_own_shutdown() -> None:
    platform = FakePlatform(work_s=1e9)
    assert run(platform) == 2
    assert platform.clock_s < 2 * (QUICK.drain_within_s + 20) + QUICK.pause_s


def test_a_stream_that_is_left_so_is_told() -> None:
    told: list[str] = []
    mover(FakePlatform(work_s=1e9), told).run(STEPS[:5], CELLS, BEFORE)
    assert "m@1--b: 1 requests have not ended, and have Serve's graceful shutdown left" in told


def test_a_drain_that_never_takes_hold_undoes_the_move() -> None:
    """The old cell gets new requests as before, so that it must not go."""
    platform = FakePlatform()
    platform.ongoing = lambda app: None  # type: ignore[method-assign]
    with pytest.raises(MoveStopped, match="the drain of m@1--b was removed, or does not reach"):
        run(platform)
    assert platform.cells == CELLS
    assert platform.drains == {}
    assert platform.clock_s < 60


def test_a_drain_that_is_removed_stops_the_move() -> None:
    platform = FakePlatform(work_s=15)
    seen: list[str] = []

    def ongoing(app: str) -> int | None:
        seen.append(app)
        if len(seen) == 5:
            platform.drains.clear()  # by an operator
        return FakePlatform.ongoing(platform, app)

    platform.ongoing = ongoing  # type: ignore[method-assign]
    with pytest.raises(MoveStopped, match="was removed"):
        run(platform)
    assert platform.cells == CELLS


def test_a_new_cell_that_dies_again_and_again_is_given_up() -> None:
    platform = FakePlatform()

    def ongoing(app: str) -> int | None:
        platform.drains.clear()  # the guard of this fake would see it before the mover does
        platform.born["m@1--c"] = platform.clock_s
        return 0

    platform.ongoing = ongoing  # type: ignore[method-assign]
    with pytest.raises(MoveStopped, match=f"m@1--c was lost {MOST_LOST + 1} times"):
        run(platform)
    assert platform.cells == CELLS


def test_what_a_broken_off_move_left_stays_while_its_drain_does_not_take_hold() -> None:
    platform = FakePlatform(cells=STEPS[0].cells)
    platform.ongoing = lambda app: None  # type: ignore[method-assign]
    with pytest.raises(MoveStopped, match=r"nothing was dropped: the drain of m@1--b is not"):
        mover(platform).finish(("m@1--b",), frozenset({"m@1--b"}), STEPS[4].cells, BEFORE)
    assert platform.cells == STEPS[0].cells


def test_a_cell_that_serves_is_drained_before_it_is_dropped_as_left_over() -> None:
    platform = FakePlatform(cells=STEPS[0].cells)
    mover(platform).finish(("m@1--c",), frozenset(), CELLS, BEFORE)
    assert platform.log == ["drain m@1--c", "deploy m@1 m@1--b n@1", "end m@1--c"]


def test_looks_that_fail_are_looked_at_again() -> None:
    platform = FakePlatform(unseen=lambda at_s: int(at_s) % 3 == 1)
    assert run(platform) == 2
    assert platform.cells == STEPS[-1].cells


def test_a_platform_that_is_not_seen_for_long_has_its_move_undone() -> None:
    platform = FakePlatform(unseen=lambda _: True)
    with pytest.raises(MoveStopped, match=r"m@1--c has started is not known \(the cluster does"):
        run(platform)
    assert platform.cells == CELLS
    gone = FakePlatform(unseen=lambda at_s: at_s > 6)
    with pytest.raises(MoveStopped, match="the drain of m@1--b"):
        run(gone)
    assert (gone.cells, gone.drains) == (CELLS, {})


def test_a_version_that_has_scaled_down_moves_into_a_cell_that_sleeps() -> None:
    """Two ready replicas would be waited for in vain: of that cell one always runs."""
    asked = FleetProblem(ASKED.problem, {**ASKED.demands, "m@1": Demand(2, 1)}, {})
    cells = cells_of_packing(asked, BEFORE)
    assert [cell.min_replicas for cell in cells] == [1, 0, 1]
    made = steps(asked, BEFORE, cells, [Move("m@1", "g0", "g1", 1)])
    platform = FakePlatform(cells=cells, scaled_down=True)
    assert mover(platform).run(made, cells, BEFORE) == 1
    assert platform.log[-2:] == ["deploy m@1--b n@1", "end m@1"]


def test_a_pause_lies_between_batches() -> None:
    patient = Pace(ready_within_s=30, drain_within_s=20, pause_s=110)
    one, other = FakePlatform(), FakePlatform()
    run(one)
    mover(other, pace=patient).run(STEPS, CELLS, BEFORE)
    assert other.clock_s - one.clock_s == 100


def test_a_new_cell_that_fails_is_dropped_again() -> None:
    platform = FakePlatform(broken={"m@1--c"})
    with pytest.raises(MoveStopped, match=r"m@1--c did not start \(out of memory\)"):
        run(platform)
    assert platform.cells == CELLS
    assert platform.drains == {}


def test_a_new_cell_that_is_late_is_dropped_again() -> None:
    platform = FakePlatform(start_s=100)
    platform.born = dict.fromkeys(platform.born, -1000.0)
    with pytest.raises(MoveStopped, match="not ready within 30 s"):
        run(platform)
    assert platform.cells == CELLS


def test_the_old_cell_serves_again_while_the_new_one_is_away() -> None:
    platform = FakePlatform()
    seen: list[set[str]] = []

    def ongoing(app: str) -> int:
        if not seen:
            platform.born["m@1--c"] = platform.clock_s  # it died, and starts anew
            platform.drains.clear()  # the guard of this fake would see it before the mover does
        seen.append(set(platform.drains))
        return 0

    platform.ongoing = ongoing  # type: ignore[method-assign]
    run(platform, STEPS[:5])
    assert platform.log.count("drain m@1--b") == 2
    assert platform.log.index("end m@1--b") < len(platform.log) - 1


def test_nothing_moves_at_peak() -> None:
    platform = FakePlatform(loads=lambda _: Load(waiting=3))
    with pytest.raises(MoveStopped, match="nothing was moved: 3 requests wait"):
        run(platform)
    assert platform.log == []
    assert platform.clock_s == LOOKS - 1


def test_one_burst_is_no_peak() -> None:
    assert run(FakePlatform(loads=lambda at_s: Load(waiting=3 if at_s < 2 else 0))) == 2


def test_a_peak_later_stops_after_the_batch() -> None:
    platform = FakePlatform(loads=lambda at_s: Load(frozen="ops-1" if at_s > 10 else ""))
    with pytest.raises(MoveStopped, match="stopped after 1 batches: everything is frozen by ops-1"):
        run(platform)
    assert platform.cells == STEPS[4].cells


def test_every_step_is_told() -> None:
    told: list[str] = []
    mover(FakePlatform(), told).run(STEPS, CELLS, BEFORE)
    assert told[0] == "batch 1: add done, m@1 from g1 to g2"
    assert len(told) == len(STEPS)


def test_broken_off_at_any_call_the_rest_is_finished_or_undone() -> None:
    whole = FakePlatform()
    run(whole)
    ends: set[tuple[str, ...]] = set()
    for dies_at in range(1, whole.calls + 1):
        platform = FakePlatform(dies_at=dies_at)
        with pytest.raises(KeyboardInterrupt):
            run(platform)
        drained = frozenset(platform.drains)
        rest = settled(ASKED, platform.cells, drained, platform.ready())
        left = {cell.app for cell in rest}
        gone = tuple(cell.app for cell in platform.cells if cell.app not in left)
        mover(platform).finish(gone, drained, rest, BEFORE)
        assert platform.drains == {}
        assert sum(cell.replicas for cell in platform.cells if cell.version == "m@1") == 2
        ends.add(tuple(place for cell in platform.cells for place in cell.places))
    assert {("g0", "g1", "g2"), ("g0", "g2", "g2"), ("g3", "g2", "g2")} <= ends
