"""Models that share an area of memory, in a world of one area that does what it is told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.scaling.area import BOOT_S, Moment, Presence, Residency, Seen
from modelyard.scaling.eviction import QUIET_S
from modelyard.scaling.loading_orders import (
    DONE_S,
    DRAIN_S,
    SWAP_EVERY_S,
    is_kept,
    is_shut,
    patience_s,
    waits_s,
)
from modelyard.scaling.residency import GIVE_UP_S, REPLACED_WITHIN_S, step

ABSENT, STARTING, READY, LEAVING = Presence


@dataclass
class World:
    """One area whose models load in `load_s` and leave in 3 s. One tick is a second."""

    memory_gb: float
    models: dict[str, Seen]
    now: float = 0.0
    is_peak: bool = False
    known: Residency = field(default_factory=Residency)
    since: dict[str, float] = field(default_factory=dict)
    admitted: list[str] = field(default_factory=list)

    def set(self, version: str, **changes: Any) -> None:
        self.models[version] = replace(self.models[version], **changes)

    def tick(self, seconds: int = 1) -> None:
        for _ in range(seconds):
            self.now += 1
            before = set(self.known.admitted)
            self.known = step(self.known, self.moment)
            self.admitted += sorted(set(self.known.admitted) - before)
            self._follow()

    @property
    def moment(self) -> Moment:
        return Moment(self.memory_gb, dict(self.models), self.now, self.is_peak)

    @property
    def used_gb(self) -> float:
        return sum(one.memory_gb for one in self.models.values() if one.presence is not ABSENT)

    def _follow(self) -> None:
        for version, one in self.models.items():
            for_s = self.now - self.since.get(version, 0.0)
            if one.presence is ABSENT and is_kept(self.known, one, self.now):
                self._becomes(version, STARTING)
            elif one.presence is STARTING and for_s >= one.load_s:
                self._becomes(version, READY)
            elif one.presence is READY and is_shut(self.known, one, self.now):
                self._becomes(version, LEAVING)
            elif one.presence is LEAVING and for_s >= 3:
                self._becomes(version, ABSENT)

    def _becomes(self, version: str, presence: Presence) -> None:
        if presence is READY:
            self.set(version, wished=False)
        self.set(version, presence=presence)
        self.since[version] = self.now


def world(memory_gb: float = 10, **models: float) -> World:
    """Models by name with their gigabytes; each loads in 10 s."""
    made = {f"{name}@1": Seen(f"{name}@1", gb, 10.0) for name, gb in models.items()}
    return World(memory_gb, made)


def loaded(made: World, *versions: str, idle_s: float = 60.0) -> World:
    """With these loaded for long."""
    for version in versions:
        made.set(version, presence=READY, idle_s=idle_s)
    made.tick()
    return made


def test_what_fits_is_loaded_at_once_beside_the_others() -> None:
    made = loaded(world(a=6, b=4), "a@1")
    made.set("b@1", wished=True)
    made.tick()
    assert made.known.admitted == {"b@1": made.now}
    assert is_kept(made.known, made.models["b@1"], made.now)
    made.tick(11)
    assert {one.presence for one in made.models.values()} == {READY}


def test_a_wish_that_goes_on_loads_once() -> None:
    made = world(a=6)
    for _ in range(60):
        made.set("a@1", wished=True)
        made.tick()
    assert made.admitted == ["a@1"]
    assert made.known.loads == 1


def test_an_idle_model_makes_room_and_the_load_begins_when_it_is_gone() -> None:
    made = loaded(world(a=6, b=6), "a@1")
    made.set("b@1", wished=True)
    made.tick()
    assert set(made.known.leaving) == {"a@1"}
    assert is_shut(made.known, made.models["a@1"], made.now)
    while made.models["a@1"].presence is not ABSENT:
        assert made.admitted == []
        made.tick()
    made.tick()
    assert made.admitted == ["b@1"]
    assert made.known.evictions == 1


@pytest.mark.parametrize(
    "busy", [{"idle_s": QUIET_S - 0.1}, {"held": True}, {"presence": STARTING}], ids=str
)
def test_a_model_in_use_or_wanted_by_others_never_makes_room(busy: dict[str, Any]) -> None:
    made = loaded(world(a=6, b=6), "a@1")
    made.set("a@1", **busy)
    made.set("b@1", wished=True)
    made.tick(5)
    assert (made.known.leaving, made.admitted) == ({}, ["a@1"] if "presence" in busy else [])
    assert [version for version, _ in made.known.waiting] == ["b@1"]


def test_nothing_is_evicted_at_peak() -> None:
    made = loaded(world(a=6, b=6), "a@1")
    made.is_peak = True
    made.set("b@1", wished=True)
    made.tick(5)
    assert made.known.leaving == {}
    made.is_peak = False
    made.tick()
    assert set(made.known.leaving) == {"a@1"}


def test_the_least_worth_goes_and_no_more_than_is_needed() -> None:
    made = world(memory_gb=10, a=4, b=4, c=2, d=4)
    loaded(made, "a@1", "b@1", "c@1")
    made.set("a@1", requests=50)
    made.tick()
    made.set("a@1", requests=0)
    made.set("d@1", wished=True)
    made.tick()
    assert set(made.known.leaving) == {"b@1"}


def test_nobody_is_evicted_for_a_model_that_would_still_not_fit() -> None:
    made = loaded(world(memory_gb=10, a=4, b=6, c=10), "a@1", "b@1")
    made.set("b@1", idle_s=0.0)
    made.set("c@1", wished=True)
    made.tick(5)
    assert made.known.leaving == {}


def test_evictions_of_one_area_keep_their_distance() -> None:
    made = loaded(world(memory_gb=10, a=6, b=6, c=6), "a@1")
    made.set("b@1", wished=True)
    made.tick()
    first = made.now
    made.set("c@1", wished=True)
    while not made.known.evictions > 1:
        made.tick()
        if made.models["b@1"].presence is READY:
            made.set("b@1", idle_s=60.0)
    assert made.now - first >= SWAP_EVERY_S


def test_a_smaller_model_passes_one_that_nobody_makes_room_for() -> None:
    made = loaded(world(memory_gb=10, a=6, b=6, c=4), "a@1", idle_s=0.0)
    made.set("b@1", wished=True)
    made.tick()
    made.set("c@1", wished=True)
    made.tick()
    assert made.admitted == ["c@1"]


def test_no_smaller_model_takes_the_memory_that_is_freed_for_another() -> None:
    made = loaded(world(memory_gb=10, a=6, b=10, c=4), "a@1")
    made.set("b@1", wished=True)
    made.tick()
    made.set("c@1", wished=True)
    made.tick(6)
    assert made.admitted == ["b@1"]


def test_memory_of_a_replica_that_died_is_kept_for_its_successor() -> None:
    made = loaded(world(a=6, b=6), "a@1")
    made.set("a@1", presence=ABSENT)
    made.set("b@1", wished=True)
    made.tick()
    assert made.admitted == []
    assert not is_shut(made.known, made.models["a@1"], made.now)
    for _ in range(int(REPLACED_WITHIN_S) - 1):
        assert is_kept(made.known, made.models["a@1"], made.now)
        made.set("a@1", presence=ABSENT)
        made.tick()
    made.set("a@1", presence=ABSENT)
    made.tick()
    assert made.admitted == ["b@1"]
    assert is_shut(made.known, made.models["a@1"], made.now)


def test_what_left_by_itself_frees_its_memory_at_once() -> None:
    made = loaded(world(a=6, b=6), "a@1")
    made.set("a@1", presence=LEAVING)
    made.tick()
    made.set("a@1", presence=ABSENT)
    made.set("b@1", wished=True)
    made.tick()
    assert made.admitted == ["b@1"]


def test_a_load_that_never_ends_makes_room_and_queues_again() -> None:
    made = world(a=6, b=6)
    made.set("a@1", load_s=10_000.0, wished=True)
    made.tick(2)
    made.set("a@1", load_s=10.0, presence=STARTING)
    made.since["a@1"] = 1e9
    made.set("b@1", wished=True)
    made.tick(int(GIVE_UP_S))
    assert set(made.known.leaving) == {"a@1"}
    made.set("a@1", presence=ABSENT)
    made.tick()
    assert "b@1" in made.known.admitted


def test_a_load_that_nobody_remembers_goes_on() -> None:
    made = world(a=6)
    made.set("a@1", presence=STARTING, wished=True)
    made.tick()
    assert is_kept(made.known, made.models["a@1"], made.now)


def test_a_barred_model_is_not_loaded_for_its_wish() -> None:
    made = world(a=6)
    made.set("a@1", wished=True, barred=True)
    made.tick()
    assert made.known.admitted == {}
    assert is_shut(made.known, made.models["a@1"], made.now)


def test_callers_are_told_the_load_time_and_the_wait_for_their_turn() -> None:
    made = loaded(world(memory_gb=10, a=6, b=6, c=6), "a@1", idle_s=0.0)
    made.known = replace(made.known, swapped_at=made.now - 10)
    made.set("b@1", wished=True)
    made.tick()
    made.set("c@1", wished=True)
    made.tick()
    # a is in use, and so may b be: each makes room when the patience of the next is over.
    patient_s = patience_s(made.models["b@1"])
    assert waits_s(made.known, made.moment) == {
        "b@1": patient_s - 1 + 10,
        "c@1": 2 * patient_s - 1 + 10,
    }
    made.set("a@1", idle_s=60.0)
    assert waits_s(made.known, made.moment)["b@1"] == 18 + 10
    alone = world(a=6)
    alone.set("a@1", wished=True)
    alone.tick()
    alone.now += 4
    assert waits_s(alone.known, alone.moment) == {"a@1": 6}


SIZES = st.integers(1, 10)


@settings(max_examples=40)
@given(sizes=st.lists(SIZES, min_size=2, max_size=5), seed=st.integers(0, 2**32))
def test_the_area_is_never_exceeded_and_no_model_in_use_is_shut(
    sizes: list[int], seed: int
) -> None:
    """But for one that others waited for in vain."""
    random = Random(seed)
    made = world(10, **{f"m{n}": size for n, size in enumerate(sizes)})
    for _ in range(120):
        for version in random.sample(sorted(made.models), 2):
            if made.models[version].presence in (ABSENT, LEAVING):
                made.set(version, wished=True)
            else:
                made.set(version, idle_s=random.choice([0.0, 60.0]), requests=1)
        made.is_peak = random.random() < 0.2
        before = dict(made.models)
        was_leaving = set(made.known.leaving)
        made.tick()
        for version in set(made.known.leaving) - was_leaving:
            assert made.known.head is not None
            one, since = made.models[made.known.head[0]], made.known.head[1]
            patient_s = patience_s(one)
            assert before[version].idle_s >= QUIET_S or made.now >= since + patient_s
            assert not made.is_peak or made.now >= since + 2 * patient_s
        assert made.used_gb <= 10


@settings(max_examples=20)
@given(sizes=st.lists(SIZES, min_size=2, max_size=5), order=st.randoms(use_true_random=False))
def test_every_model_is_loaded_within_one_swap_each_of_those_before_it(
    sizes: list[int], order: Random
) -> None:
    """Callers of all keep wishing, and what is loaded is idle at once."""
    made = world(10, **{f"m{n}": size for n, size in enumerate(sizes)})
    versions = sorted(made.models)
    order.shuffle(versions)
    seen = set()
    for _ in range(len(sizes) * int(SWAP_EVERY_S + 30)):
        for version in versions:
            if made.models[version].presence in (ABSENT, LEAVING):
                made.set(version, wished=True)
            else:
                made.set(version, idle_s=60.0)
        made.tick()
        seen |= {version for version, one in made.models.items() if one.presence is READY}
    assert seen == set(versions)


@settings(max_examples=20)
@given(
    sizes=st.lists(SIZES, min_size=2, max_size=5),
    is_peak=st.booleans(),
    order=st.randoms(use_true_random=False),
)
def test_under_steady_traffic_every_model_gets_its_turn_in_a_bounded_time(
    sizes: list[int], is_peak: bool, order: Random
) -> None:
    """Callers of all keep wishing, what is loaded is always in use, and at peak requests always
    wait for it; no request of it ends. Before its own turn a model waits for one turn of each
    other: twice its patience, the time that what was just loaded is kept, a drain and a swap."""
    made = world(10, **{f"m{n}": size for n, size in enumerate(sizes)})
    made.is_peak = is_peak
    versions = sorted(made.models)
    order.shuffle(versions)
    one = made.models[versions[0]]
    turn_s = 2 * patience_s(one) + 2 * one.load_s + DRAIN_S + SWAP_EVERY_S + one.load_s + 10
    asked_at: dict[str, float] = {}
    for _ in range(3 * int(turn_s) + len(sizes) * 60):
        for version in versions:
            if made.models[version].presence in (ABSENT, LEAVING):
                made.set(version, wished=True)
                asked_at.setdefault(version, made.now)
            elif made.models[version].presence is READY:
                asked_at.pop(version, None)
                made.set(version, idle_s=0.0, requests=1)
        made.tick()
        assert made.used_gb <= 10
        assert all(made.now - at <= len(sizes) * turn_s for at in asked_at.values())


def test_a_large_model_is_not_passed_for_ever_by_small_ones_in_use() -> None:
    made = loaded(world(memory_gb=10, a=6, b=10, c=4), "a@1", idle_s=0.0)
    made.set("b@1", wished=True)
    made.tick()
    patient_s = patience_s(made.models["b@1"])
    made.tick(int(patient_s) - 1)
    assert made.known.leaving == {}
    made.set("c@1", wished=True)
    made.tick()  # its patience is over: nobody passes, and what is in use makes room
    assert set(made.known.leaving) == {"a@1"}
    made.tick(20)
    assert made.models["a@1"].presence is READY  # its requests end first
    assert not is_kept(made.known, made.models["a@1"], made.now)
    made.set("a@1", idle_s=DONE_S)
    made.tick(6)
    assert made.admitted == ["b@1"]


def test_a_request_that_does_not_end_keeps_a_model_for_a_bounded_time() -> None:
    made = loaded(world(a=6, b=6), "a@1", idle_s=0.0)
    made.known = replace(made.known, leaving={"a@1": made.now})
    made.tick(int(DRAIN_S) - 1)
    assert made.models["a@1"].presence is READY
    made.tick()
    assert made.models["a@1"].presence is LEAVING


def test_at_peak_what_is_in_use_stays_twice_as_long() -> None:
    made = loaded(world(a=6, b=6), "a@1", idle_s=0.0)
    made.is_peak = True
    made.set("b@1", wished=True)
    made.tick()
    patient_s = patience_s(made.models["b@1"])
    made.tick(2 * int(patient_s) - 1)
    assert made.known.leaving == {}
    made.tick()
    assert set(made.known.leaving) == {"a@1"}


def test_what_an_operator_holds_makes_no_room_and_holds_up_nobody_else() -> None:
    made = loaded(world(memory_gb=10, a=6, b=6, c=4), "a@1")
    made.set("a@1", held=True)
    made.set("b@1", wished=True)
    made.tick(200)
    made.set("c@1", wished=True)
    made.tick()
    assert (made.known.leaving, made.admitted) == ({}, ["c@1"])


def test_a_load_into_free_memory_waits_for_the_end_of_the_peak_but_not_for_ever() -> None:
    made = world(a=6)
    made.is_peak = True
    made.set("a@1", wished=True)
    made.tick()
    assert made.admitted == []
    patient_s = patience_s(made.models["a@1"])
    assert waits_s(made.known, made.moment) == {"a@1": patient_s + 10}
    made.tick(int(patient_s) - 1)
    assert made.admitted == []
    made.tick()
    assert made.admitted == ["a@1"]
    calm = world(a=6)
    calm.set("a@1", wished=True)
    calm.tick()
    assert calm.admitted == ["a@1"]


def test_one_model_of_an_area_loads_at_a_time() -> None:
    made = world(memory_gb=10, a=5, b=5)
    for version in made.models:
        made.set(version, wished=True)
    made.tick()
    assert made.admitted == ["a@1"]
    assert waits_s(made.known, made.moment) == {"a@1": 10, "b@1": 20}
    while made.models["a@1"].presence is not READY:
        assert made.admitted == ["a@1"]
        made.tick()
    made.tick()
    assert made.admitted == ["a@1", "b@1"]


def test_an_admission_outlasts_the_boot_of_a_replica_that_says_nothing_yet() -> None:
    made = world(a=6, b=6)
    made.set("a@1", load_s=1.0, wished=True)
    made.tick()
    made.set("a@1", wished=False)
    made.set("b@1", wished=True)
    for _ in range(int(BOOT_S) - 1):
        made.set("a@1", presence=ABSENT)
        made.tick()
        assert is_kept(made.known, made.models["a@1"], made.now)
    made.set("a@1", presence=ABSENT)
    made.tick()
    assert made.admitted == ["a@1", "b@1"]


def test_a_long_load_goes_on_while_nobody_else_needs_the_memory() -> None:
    made = world(a=6, b=6)
    made.set("a@1", load_s=1.0, presence=STARTING)
    made.since["a@1"] = 1e9
    made.tick(2 * int(BOOT_S))
    assert is_kept(made.known, made.models["a@1"], made.now)
    made.set("b@1", wished=True)
    made.tick(2)
    assert set(made.known.leaving) == {"a@1"}
