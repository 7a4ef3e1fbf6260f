"""A reading of the board taken apart by version."""

from __future__ import annotations

from dataclasses import replace

from modelyard.control.ingress_post import IngressPost, Wish
from modelyard.control.published import Override, OverrideKind, Published
from modelyard.control.reading import IngressEntry, Reading
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.silence import SILENT_S
from modelyard.scaling.version_signal import (
    INGRESS_SILENT_S,
    BoardSignal,
    Bound,
    Drain,
    VersionSignal,
)
from modelyard.testing.in_memory import post

GEN = "gen@1.0.0"


def entry(*waiting: tuple[str, str, int], ingress: str = "i-1", age_s: float = 0.1) -> IngressEntry:
    return IngressEntry(IngressPost(ingress, "digest", True, waiting=waiting), age_s)


def override(kind: OverrideKind, value: float | None, left_s: float = 60.0) -> Override:
    return Override(kind, GEN, value, "ops-1", "a test", left_s)


def of(
    *entries: IngressEntry,
    wishes: tuple[Wish, ...] = (),
    overrides: tuple[Override, ...] = (),
) -> VersionSignal:
    published = Published(1, 1, overrides=overrides)
    reading = Reading((), entries, wishes, published, 0.2, up_s=60.0)
    return BoardSignal.of(reading).versions.get(GEN, VersionSignal())


def test_what_waits_is_summed_over_bands_and_ingresses() -> None:
    one = entry((GEN, "interactive", 3), (GEN, "batch", 4), ("other@1", "batch", 90))
    two = entry((GEN, "interactive", 5), ingress="i-2")
    assert of(one, two).waiting == 12


def test_the_queue_of_an_ingress_that_fell_silent_is_gone() -> None:
    dead = entry((GEN, "batch", 50), ingress="i-2", age_s=INGRESS_SILENT_S)
    assert of(entry((GEN, "batch", 1)), dead).waiting == 1


def test_wishes_and_overrides_become_bounds() -> None:
    signal = of(
        wishes=(Wish(GEN, 1, 20.0),),
        overrides=(
            override("floor", 2),
            override("ceiling", 4),
            override("freeze", None, 30.0),
        ),
    )
    assert signal.wish == Bound(1, "", 20.0)
    assert signal.floor == Bound(2, "ops-1", 60.0)
    assert signal.ceiling == Bound(4, "ops-1", 60.0)
    assert signal.freeze == Bound(0, "ops-1", 30.0)


def test_of_two_floors_the_higher_holds_and_of_two_ceilings_the_lower() -> None:
    floors, ceilings = (
        (override("floor", 2), override("floor", 1)),
        (
            override("ceiling", 2),
            override("ceiling", 1),
        ),
    )
    signal = of(overrides=(*floors, *ceilings))
    assert signal.floor is not None
    assert signal.ceiling is not None
    assert (signal.floor.replicas, signal.ceiling.replicas) == (2, 1)


def test_what_is_no_business_of_scaling_is_left_alone() -> None:
    replica = replace(override("drain", None), target="replica:r-1")
    assert of(overrides=(replica, override("limit", 9))) == VersionSignal()


def test_drained_apps_are_told_with_their_version() -> None:
    drains = tuple(replace(override("drain", None), target=f"{GEN}{cell}") for cell in ("", "--b"))
    signal = of(overrides=drains)
    assert signal.drained == (Drain(GEN, 60.0), Drain(f"{GEN}--b", 60.0))
    assert signal.aged(20.0).drained[0] == Drain(GEN, 40.0)
    assert signal.aged(60.0).drained == ()


def test_a_wish_that_is_for_control_is_not_followed() -> None:
    assert of(wishes=(Wish(GEN, 1, 20.0, by_control=True),)) == VersionSignal()


def test_an_override_that_ran_out_is_none() -> None:
    assert of(overrides=(override("floor", 2, left_s=0.0),)) == VersionSignal()


def test_before_control_published_anything_there_are_no_bounds() -> None:
    reading = Reading((), (), (), None, None, up_s=1.5)
    assert BoardSignal.of(reading) == BoardSignal(1.5, {})


def test_bounds_run_out_while_a_reading_ages() -> None:
    signal = of(wishes=(Wish(GEN, 1, 20.0),), overrides=(override("floor", 2),))
    aged = signal.aged(20.0)
    assert aged.wish is None
    assert aged.floor == Bound(2, "ops-1", 40.0)


def test_a_freeze_of_everything_holds_every_version_and_one_of_a_rollout_none() -> None:
    everything = Override("freeze", "*", None, "ops-1", "a release", 30.0)
    published = Published(1, 1, overrides=(everything, override("floor", 2)))
    signal = BoardSignal.of(Reading((), (), (), published, 0.2, up_s=60.0))
    for version in (GEN, "never-named@1"):
        frozen = signal.of_version(version).freeze
        assert frozen is not None
        assert (frozen.author, frozen.left_s) == ("ops-1", 30.0)
    assert signal.of_version(GEN).floor == Bound(2, "ops-1", 60.0)
    rollout = replace(everything, target="rollout:r-1")
    published = Published(1, 1, overrides=(rollout,))
    signal = BoardSignal.of(Reading((), (), (), published, 0.2, up_s=60.0))
    assert signal.of_version(GEN) == VersionSignal()


def test_replicas_that_start_or_serve_are_counted_by_app() -> None:
    posts = (
        post(GEN, replica="r-1"),
        post(GEN, replica="r-2", phase=Phase.LOADING),
        post(GEN, replica="r-3", phase=Phase.DRAINING),
        replace(post(GEN, replica="r-4"), age_s=SILENT_S),
        post(f"{GEN}--b", replica="r-5", phase=Phase.FAILED),
    )
    reading = Reading(posts, (), (), None, None, up_s=60.0)
    assert BoardSignal.of(reading).there == {GEN: 2, f"{GEN}--b": 1}


def test_replicas_of_a_move_and_of_a_swap_stay_in_a_drain() -> None:
    move = replace(override("drain", None), reason="move: modelyard plan --defrag")
    swap = replace(override("drain", None), author="swap:d1")
    assert of(overrides=(move,)).drained == (Drain(GEN, 60.0, stays=True),)
    assert of(overrides=(swap,)).drained == (Drain(GEN, 60.0, stays=True),)
