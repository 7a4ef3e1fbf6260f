"""Places follow from pools: their names, sizes and prices."""

from placement.inventory import places_of
from placement.problem import Place
from tests.placement.fleets import fleet, model, shared

CPU = {"nodes": 1, "memory_gb": 8.5, "cpus": 2.5, "price_per_hour": 0.2}
WHOLE = {"nodes": 2, "accelerator": "H100", "devices": 4, "memory_gb": 80, "zone": "b"}


def test_a_shared_device_is_a_place_of_its_own() -> None:
    spec = fleet({"gpu": shared(1, devices=2, zone="a")}, {"m": model(1)})
    price = 1_250_000
    assert places_of(spec) == (
        Place("gpu-0-d0", "gpu", "gpu-0", "a", (80_000, 20), price, 1),
        Place("gpu-0-d1", "gpu", "gpu-0", "a", (80_000, 20), price, 1),
    )


def test_a_machine_of_whole_devices_is_one_place() -> None:
    spec = fleet({"gpu": WHOLE | {"names": ["left", "right"]}}, {"m": model(1)})
    assert places_of(spec) == (
        Place("left", "gpu", "left", "b", (4, 0), 1_000_000, 4),
        Place("right", "gpu", "right", "b", (4, 0), 1_000_000, 4),
    )


def test_a_cpu_machine_has_its_memory_and_hundredths_of_cpus() -> None:
    (place,) = places_of(fleet({"gpu": CPU}, {"m": model(1)}))
    assert place == Place("gpu-0", "gpu", "gpu-0", "local", (8_500, 250), 200_000, 0)


def test_devices_together_cost_what_their_machine_costs() -> None:
    spec = fleet({"gpu": shared(1, devices=3, price_per_hour=1.0)}, {"m": model(1)})
    assert [place.price for place in places_of(spec)] == [333_334, 333_333, 333_333]


def test_a_lost_machine_takes_its_devices_along_and_a_lost_device_only_itself() -> None:
    spec = fleet({"gpu": shared(2, devices=2)}, {"m": model(1)})
    names = {place.name for place in places_of(spec, frozenset({"gpu-0", "gpu-1-d1"}))}
    assert names == {"gpu-1-d0"}
