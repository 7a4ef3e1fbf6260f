"""What a replica takes, in the units of each pool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.needs import needs_of, rounded_up
from tests.placement.fleets import fleet, model, shared

WHOLE = {"nodes": 1, "accelerator": "H100", "devices": 4, "memory_gb": 80, "cpus": 16}


def needs(pool: dict[str, object], memory: int, **more: object) -> dict[str, tuple[int, int]]:
    spec = fleet({"gpu": pool}, {"m": model(1, **more)})
    return dict(needs_of(spec.models["m"], memory, spec))


def test_memory_is_rounded_up_to_parts_of_a_device() -> None:
    assert needs(shared(slices=8), 10_000_000_001) == {"gpu": (20_000, 2)}
    assert needs(shared(slices=8), 10_000_000_000) == {"gpu": (10_000, 2)}


def test_memory_in_whole_gb_where_there_are_no_parts() -> None:
    assert needs(shared(), 53_200_000_000) == {"gpu": (54_000, 2)}


@pytest.mark.parametrize(
    ("cpus", "percent", "twentieths"), [(1, 5, 2), (0.5, 25, 5), (16, 5, 20), (0, 5, 1), (0, 6, 2)]
)
def test_compute_is_the_larger_of_the_share_and_the_cpus(
    cpus: float, percent: float, twentieths: int
) -> None:
    found = needs(shared(), 10**9, cpus=cpus, compute_percent=percent)
    assert found == {"gpu": (1_000, twentieths)}


def test_whole_devices_are_counted() -> None:
    assert needs(WHOLE, 120 * 10**9, tensor_parallel_size=2) == {"gpu": (2, 0)}


def test_a_cpu_machine_gives_memory_and_cpus() -> None:
    assert needs({"nodes": 1, "memory_gb": 8, "cpus": 4}, 10**9, cpus=0.5) == {"gpu": (1_000, 50)}


@pytest.mark.parametrize(
    ("pool", "memory", "more"),
    [
        (WHOLE, 81 * 10**9, {}),
        (WHOLE, 10**9, {"tensor_parallel_size": 8}),
        (shared(), 10**9, {"tensor_parallel_size": 2}),
        (shared(), 81 * 10**9, {}),
        (shared(), 10**9, {"cpus": 17}),
    ],
)
def test_a_pool_where_it_does_not_fit_is_not_there(
    pool: dict[str, object], memory: int, more: dict[str, object]
) -> None:
    assert needs(pool, memory, **more) == {}


@given(
    st.integers(1_000, 200_000).flatmap(
        lambda size: st.tuples(st.integers(1, size), st.just(size))
    ),
    st.sampled_from([1, 2, 4, 7, 8, 16, None]),
)
def test_rounding_gives_enough_and_never_more_than_a_place(
    asked: tuple[int, int], slices: int | None
) -> None:
    megabytes, size = asked
    assert megabytes <= rounded_up(megabytes, size, slices) <= size


@given(st.integers(1_000, 200_000), st.sampled_from([1, 2, 4, 7, 8, 16]))
def test_as_many_replicas_of_one_part_fit_as_there_are_parts(size: int, slices: int) -> None:
    assert slices * rounded_up(size // slices, size, slices) <= size


def test_what_fits_by_the_byte_fits_after_rounding() -> None:
    pool = shared(memory_gb=79.9996)

    assert needs(pool, 79_999_500_000)["gpu"][0] == 79_999
