"""Control and the models of a swap area, from readings of the board."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from modelyard.config.table import Table, parse_table
from modelyard.control.ingress_post import IngressPost, Wish
from modelyard.control.journal import Journal
from modelyard.control.published import Override, OverrideKind, Published
from modelyard.control.reading import IngressEntry, Reading
from modelyard.control.report import ControlReport
from modelyard.control.service import ControlService
from modelyard.control.swap_desk import LASTS_S, SwapDesk
from modelyard.control.usage import Amounts, UsageKey
from modelyard.control.verbs import Command
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post
from modelyard.lifecycle.silence import SILENT_S
from modelyard.scaling.eviction import QUIET_S
from modelyard.scaling.loading_orders import DONE_S
from modelyard.testing.control_world import ControlWorld
from modelyard.testing.in_memory import post, table_record

A, B, OTHER = "a@1.0.0", "b@1.0.0", "other@1.0.0"
AREAS = {"d1": {"memory_gb": 10, "models": {A: 6, B: 6}}}


def with_areas(areas: dict[str, Any]) -> Table:
    return parse_table(table_record(swap_areas=areas))


class Desk:
    """A desk, its clock, and what the board would hold."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.desk = SwapDesk(lambda: self.now)
        self.table = with_areas(AREAS)
        self.posts: dict[str, Post] = {}
        self.ingress = IngressPost("i-1", "digest", True)
        self.wishes: tuple[Wish, ...] = ()
        self.overrides: tuple[Override, ...] = ()
        self.up_s = 600.0

    def there(self, app: str, phase: Phase = Phase.READY, **changes: Any) -> None:
        self.posts[app] = post(app, phase=phase, **changes)

    def gone(self, app: str) -> None:
        del self.posts[app]

    def wish(self, version: str, left_s: float = 60.0) -> None:
        self.wishes = (Wish(version, 1, left_s, by_control=True),)

    def tick(self, seconds: float = 1.0) -> dict[tuple[str, str], Override]:
        """Seconds pass, then the desk looks once; what it asks for, by kind and target."""
        self.now += seconds
        entries = (IngressEntry(self.ingress, 0.1),)
        word = Published(1, 1, overrides=self.overrides)
        posts = tuple(self.posts.values())
        self.desk.read(self.table, Reading(posts, entries, self.wishes, word, 0.2, self.up_s))
        return {(one.kind, one.target): one for one in self.desk.overrides()}


@pytest.fixture
def desk() -> Desk:
    return Desk()


def evicting(desk: Desk) -> dict[tuple[str, str], Override]:
    """A is loaded and idle, and a caller wants B."""
    desk.there(f"{A}--b")
    desk.tick()
    desk.wish(B)
    return desk.tick(QUIET_S)


def test_what_is_loaded_stays_and_what_is_not_has_a_ceiling_of_zero(desk: Desk) -> None:
    desk.there(A)
    told = desk.tick()
    assert told.keys() == {("floor", A), ("ceiling", B)}
    assert told["ceiling", B] == Override("ceiling", B, 0.0, "swap:d1", "it is not loaded", LASTS_S)


def test_a_wish_for_what_fits_becomes_a_floor_that_stays(desk: Desk) -> None:
    desk.wish(A)
    told = desk.tick()
    assert told.keys() == {("floor", A), ("ceiling", B)}
    assert (told["floor", A].value, told["floor", A].author) == (1.0, "swap:d1")
    assert desk.desk.loads() == ((A, 30.0),)
    desk.there(A, Phase.LOADING)
    assert ("floor", A) in desk.tick(20)
    assert desk.desk.loads() == ((A, 10.0),)
    desk.there(A, load_s=30.0)
    assert ("floor", A) in desk.tick(10)
    assert desk.desk.loads() == ()
    assert ("floor", A) in desk.tick(600)


def test_an_idle_model_is_drained_and_the_other_loads_once_it_is_gone(desk: Desk) -> None:
    told = evicting(desk)
    assert told.keys() == {("ceiling", A), ("drain", f"{A}--b"), ("ceiling", B)}
    desk.there(f"{A}--b", Phase.DRAINING)
    assert ("floor", B) not in desk.tick()
    desk.gone(f"{A}--b")
    assert desk.tick().keys() == {("floor", B), ("ceiling", A)}
    assert desk.desk.shown["d1"]["evictions"] == 1


@pytest.mark.parametrize(
    "ingress",
    [
        {"in_flight": ((A, 1),)},
        {"in_flight": ((A, 1),), "waiting": ((A, "interactive", 1),)},
        {"waiting": ((f"{OTHER}", "batch", 3),)},
    ],
    ids=["under way", "waiting", "waiting for another model of the same device"],
)
def test_nothing_is_evicted_while_requests_are_there(desk: Desk, ingress: dict[str, Any]) -> None:
    other = post(OTHER)
    desk.posts[OTHER] = replace(other, report=replace(other.report, place="d1"))
    desk.ingress = replace(desk.ingress, **ingress)
    assert evicting(desk).keys() == {("floor", A), ("ceiling", B)}


def test_short_requests_between_two_looks_count_as_use(desk: Desk) -> None:
    def answered(requests: int, refused: int = 0) -> None:
        key = UsageKey("2026-11-30", "alpha", "chat", A)
        amounts = Amounts(requests=requests, refused=refused)
        desk.desk.answered(ControlReport("i-1", usage=((key, amounts),)))

    desk.there(A)
    answered(1000)  # its first report says nothing of now
    desk.tick()
    desk.wish(B)
    answered(1001)
    assert ("drain", A) not in desk.tick(QUIET_S)
    answered(1009, refused=8)
    assert ("drain", A) in desk.tick(QUIET_S)


@pytest.mark.parametrize(
    ("kind", "target", "value"), [("floor", A, 1.0), ("freeze", A, None), ("freeze", "*", None)]
)
def test_what_an_operator_holds_is_not_evicted(
    desk: Desk, kind: OverrideKind, target: str, value: float | None
) -> None:
    desk.overrides = (Override(kind, target, value, "ops-1", "a test", 60.0),)
    assert evicting(desk).keys() == {("floor", A), ("ceiling", B)}


def test_what_an_operator_keeps_unloaded_is_not_loaded(desk: Desk) -> None:
    desk.overrides = (Override("ceiling", A, 0.0, "ops-1", "a test", 60.0),)
    desk.wish(A)
    assert ("floor", A) not in desk.tick()
    desk.overrides = (replace(desk.overrides[0], author="swap:d1"),)
    assert ("floor", A) in desk.tick()


def test_a_board_that_is_away_or_young_moves_nothing(desk: Desk) -> None:
    desk.wish(A)
    desk.up_s = SILENT_S - 1
    assert desk.tick() == {}
    desk.up_s = 600.0
    desk.tick()
    desk.desk.read(desk.table, None)
    assert ("floor", A) in {(one.kind, one.target) for one in desk.desk.overrides()}


def test_a_wish_that_is_older_than_the_load_it_brought_brings_no_other(desk: Desk) -> None:
    desk.there(A)
    desk.wish(A, left_s=600.0)
    desk.tick()
    desk.there(A, Phase.DRAINING)
    desk.wish(A, left_s=599.0)
    desk.tick()
    desk.gone(A)
    desk.wish(A, left_s=598.0)
    assert ("floor", A) not in desk.tick()
    desk.wish(A, left_s=602.0)  # a caller came again
    assert ("floor", A) in desk.tick()


def test_load_times_are_measured_where_a_model_was_ready(desk: Desk) -> None:
    desk.there(A, load_s=7.0)
    desk.tick()
    desk.there(A, Phase.DRAINING)
    desk.tick()
    desk.gone(A)
    desk.wish(A)
    desk.tick()
    assert desk.desk.loads() == ((A, 7.0),)


def test_a_load_lasts_from_its_admission_until_a_replica_is_ready(desk: Desk) -> None:
    desk.wish(A)
    desk.tick()
    desk.there(A, Phase.LOADING)
    desk.tick(10)
    desk.there(A, load_s=7.0)
    desk.tick(10)
    desk.tick(600)  # its phases stay 7 s
    desk.there(A, Phase.DRAINING)
    desk.tick()
    desk.gone(A)
    desk.wish(A, left_s=900.0)
    desk.tick()
    assert desk.desk.loads() == ((A, 20.0),)


def test_a_model_is_not_idle_before_it_is_ready(desk: Desk) -> None:
    desk.there(A, Phase.LOADING)
    desk.tick()
    desk.there(A)
    desk.tick(200)
    desk.tick(QUIET_S - 1)
    assert desk.desk.shown["d1"]["models"][A]["idle_s"] == QUIET_S - 1


def test_after_a_crash_the_replica_that_serve_starts_is_wanted(desk: Desk) -> None:
    desk.there(A)
    desk.tick(100)
    desk.gone(A)
    assert ("floor", A) in desk.tick()
    assert ("floor", A) in desk.tick(30)
    desk.there(A, Phase.LOADING)
    assert ("floor", A) in desk.tick(10)


def test_what_an_earlier_control_said_holds_until_the_first_look(desk: Desk) -> None:
    desk.there(A)
    said = desk.tick()
    mirror = Published(1, 1, overrides=tuple(said.values()), loads=((B, 7.0),))
    operators = Override("floor", OTHER, 1.0, "ops-1", "a test", 60.0)
    new = SwapDesk(lambda: desk.now)
    new.carry_over(replace(mirror, overrides=(*mirror.overrides, operators)))
    young = Reading((), (), (), None, None, SILENT_S - 1)
    for table, reading in ((None, None), (None, young), (desk.table, None), (desk.table, young)):
        new.read(table, reading)
        assert {(one.kind, one.target): one for one in new.overrides()} == said
        assert new.loads() == ((B, 7.0),)
    new.read(desk.table, replace(young, up_s=600.0))
    assert {(one.kind, one.target) for one in new.overrides()} == {("ceiling", A), ("ceiling", B)}
    assert new.loads() == ()


def test_a_control_that_could_not_read_the_mirror_takes_it_from_its_first_reading(
    desk: Desk,
) -> None:
    desk.there(A)
    said = desk.tick()
    new = SwapDesk(lambda: desk.now)
    new.carry_over(None)
    word = Published(1, 1, overrides=tuple(said.values()))
    new.read(None, Reading((), (), (), word, 1.0, 600.0))
    assert {(one.kind, one.target): one for one in new.overrides()} == said


def test_callers_of_what_waits_hear_of_the_wait(desk: Desk) -> None:
    evicting(desk)
    desk.gone(f"{A}--b")
    desk.wish(B)
    desk.tick()
    desk.there(B, Phase.LOADING)
    desk.wish(A)
    desk.tick()
    loads = dict(desk.desk.loads())
    assert loads[B] == 29.0
    # Measured before; B, which loads, is kept for two load times of 30 s.
    assert loads[A] == 4.0 + 2 * 30.0 - 1


def test_an_area_that_the_table_no_longer_has_is_left_alone(desk: Desk) -> None:
    desk.wish(A)
    desk.tick()
    desk.table = with_areas({})
    assert desk.tick() == {}
    assert desk.desk.shown == {}


def test_a_model_in_use_is_drained_before_it_has_a_ceiling(desk: Desk) -> None:
    desk.there(A)
    desk.tick(600)
    desk.ingress = replace(desk.ingress, in_flight=((A, 1),))
    desk.wish(B)
    for _ in range(92):  # its load time is not known: three times 30 s
        desk.wish(B)
        told = desk.tick()
    assert told.keys() == {("drain", A), ("ceiling", B)}
    desk.ingress = replace(desk.ingress, in_flight=())
    assert desk.tick(DONE_S).keys() == {("ceiling", A), ("drain", A), ("ceiling", B)}


async def test_a_control_that_starts_anew_finds_who_is_loaded_on_the_board(
    world: ControlWorld, command: Callable[..., Command]
) -> None:
    world.record = table_record(swap_areas={"d1": {"memory_gb": 10, "models": {"gen@1.0.0": 6}}})
    world.stables = 0
    first = await world.started()
    assert [one.author for one in world.word.overrides] == ["swap:d1"]
    world.stables = 1
    again = await world.started()
    assert [(one.kind, one.author) for one in world.word.overrides] == [("floor", "swap:d1")]
    shown = (await again.admin(command("status")))["swap_areas"]
    assert shown["d1"]["models"]["gen@1.0.0"]["state"] == "ready"
    await first.close()
    await again.close()


async def test_a_control_that_ticks_before_it_has_a_table_keeps_who_is_loaded(
    world: ControlWorld,
) -> None:
    world.record = table_record(swap_areas={"d1": {"memory_gb": 10, "models": {"gen@1.0.0": 6}}})
    first = await world.started()
    said = world.word.overrides
    assert [(one.kind, one.author) for one in said] == [("floor", "swap:d1")]
    again = ControlService(
        Journal(world.store, "again"), world.publish, lambda: world.now, lambda: world.now
    )
    await again.start(world.board)
    for reading in (None, world.reading()):
        await again.tick(reading)
        assert world.word.overrides == said
    again.adopt(world.record)
    await again.tick(world.reading())
    assert world.word.overrides == said
    await first.close()
    await again.close()


async def test_a_lost_store_makes_no_operators_override_of_controls_own(
    world: ControlWorld, command: Callable[..., Command]
) -> None:
    world.record = table_record(swap_areas={"d1": {"memory_gb": 10, "models": {A: 6}}})
    first = await world.started()
    world.store.rows.clear()
    again = await world.started()
    assert (await again.admin(command("overrides")))["overrides"] == []
    assert [one.author for one in world.word.overrides] == ["swap:d1"]
    await first.close()
    await again.close()
