"""What a replica takes of a place, and what a Ray node has: plan units to Ray's, and back.

Ray counts in fractions of 1/10,000, so MB as GB and twentieths of a GPU are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from placement.problem import Place, Vector

LABEL: Final = "modelyard/place"
CPU: Final = "CPU"
GPU: Final = "GPU"
MEMORY: Final = "memory"  # Ray's own, in bytes
GPU_MEMORY: Final = "gpu_mem"  # of a shared device, in GB
GPU_COMPUTE: Final = "gpu_comp"  # of a shared device, in percent

TWENTIETHS: Final = 20
_MB: Final = 1_000_000
_PERCENT_EACH: Final = 100 // TWENTIETHS

Resources = dict[str, float]


def is_shared(place: Place) -> bool:
    """Whether several replicas may be on this one device: whole devices have no second part."""
    return place.devices > 0 and place.size[1] > 0


def needed(place: Place, need: Vector, cpus: float) -> Resources:
    """The one bundle of a replica there. cpus: beside a device; without one `need` has them.

    A share of a GPU is what makes Ray set CUDA_VISIBLE_DEVICES; as many twentieths as of compute,
    so that the shares on a device never add up to more than it.
    """
    first, second = need
    if is_shared(place):
        shares = {GPU: second / TWENTIETHS, GPU_MEMORY: first / 1000}
        return _plain({CPU: cpus} | shares | {GPU_COMPUTE: second * _PERCENT_EACH})
    if place.devices > 0:
        return _plain({CPU: cpus, GPU: first})
    return _plain({CPU: second / 100, MEMORY: first * _MB})


def size_of(resources: Mapping[str, float]) -> tuple[Vector, int]:
    """What a Ray node has, as the size of a place, and its devices."""
    gpus = round(resources.get(GPU, 0))
    if GPU_MEMORY in resources:
        twentieths = round(resources.get(GPU_COMPUTE, 0)) // _PERCENT_EACH
        return (round(resources[GPU_MEMORY] * 1000), twentieths), gpus
    if gpus:
        return (gpus, 0), gpus
    hundredths = round(resources.get(CPU, 0) * 100)
    return (int(resources.get(MEMORY, 0)) // _MB, hundredths), 0


def devices_of(bundle: Mapping[str, float]) -> int:
    """Devices that a replica with this bundle sees: a share is of one."""
    share = bundle.get(GPU, 0.0)
    return 1 if 0 < share < 1 else round(share)


def takes_whole(bundle: Mapping[str, float]) -> bool:
    """Whether nobody else may be on its devices."""
    return bundle.get(GPU, 0.0) >= 1


def _plain(resources: Resources) -> Resources:
    """Whole numbers as such, and nothing that is 0: Ray takes no empty part of a bundle."""
    return {
        name: int(amount) if amount == int(amount) else round(amount, 4)
        for name, amount in resources.items()
        if amount > 0
    }
