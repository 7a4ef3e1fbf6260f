"""A reading of the board taken apart by version."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from modelyard.control.ingress_post import IngressPost, Wish
from modelyard.control.published import Override, OverrideKind, Published
from modelyard.control.reading import IngressEntry, Reading
from modelyard.scaling.version_signal import (
    INGRESS_SILENT_S,
    BoardSignal,
    Bound,
    VersionSignal,
)

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
    assert of(overrides=(override("drain", None), override("limit", 9))) == VersionSignal()


def test_an_override_that_ran_out_is_none() -> None:
    assert of(overrides=(override("floor", 2, left_s=0.0),)) == VersionSignal()


def test_before_control_published_anything_there_are_no_bounds() -> None:
    reading = Reading((), (), (), None, None, up_s=1.5)
    assert BoardSignal.of(reading) == BoardSignal(1.5, {})


def test_bounds_run_out_while_a_reading_ages() -> None:
    signal = of(wishes=(Wish(GEN, 1, 20.0),), overrides=(override("floor", 2),))
    aged = signal.in_cell(1, 20.0)
    assert aged.wish is None
    assert aged.floor == Bound(2, "ops-1", 40.0)


@given(replicas=st.integers(0, 100), waiting=st.integers(0, 1000), cells=st.integers(1, 10))
def test_cells_together_get_all_of_it_and_never_fewer_replicas_than_asked(
    replicas: int, waiting: int, cells: int
) -> None:
    version = VersionSignal(waiting=waiting, floor=Bound(replicas, "ops-1", 9.0))
    cell = version.in_cell(cells, 0.0)
    assert cell.floor is not None
    assert replicas <= cell.floor.replicas * cells < replicas + cells
    assert abs(cell.waiting * cells - waiting) < 1e-6


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
