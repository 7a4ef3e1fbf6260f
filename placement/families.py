"""Families of instances on which packings are compared.

One device holds 80 GB and 20 twentieths of compute; models have Zipf-distributed numbers of
replicas; memory is rounded up to 1 GB. "half" is the hard one: two to four to a device.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from placement.problem import Item, Place, Problem, Vector

DEVICE: Vector = (80_000, 20)
_GB = 1_000
_OVERHEAD_GB = 6


def mix(rng: random.Random) -> Vector:
    """Large and middle generators, classifiers, embedders, rerankers."""
    kind = rng.choices(["large", "middle", "classifier", "embedder", "reranker"], [1, 3, 3, 2, 2])
    low, high, least, most = {
        "large": (30, 60, 10, 18),
        "middle": (10, 30, 5, 12),
        "classifier": (1, 3, 1, 4),
        "embedder": (1, 6, 1, 5),
        "reranker": (2, 8, 2, 6),
    }[kind[0]]
    return _gb(_OVERHEAD_GB + rng.uniform(low, high)), rng.randint(least, most)


def half(rng: random.Random) -> Vector:
    return _gb(rng.uniform(14, 40)), rng.randint(3, 10)


def uniform(rng: random.Random) -> Vector:
    return _gb(rng.uniform(4, 70)), rng.randint(1, 18)


def anti_correlated(rng: random.Random) -> Vector:
    """What takes much memory takes little compute."""
    memory = rng.uniform(4, 70)
    return _gb(memory), max(1, min(20, round(20 - memory / 4 + rng.uniform(-2, 2))))


def one_dimension(rng: random.Random) -> Vector:
    """Memory alone, of "half"."""
    return half(rng)[0], 1


def alibaba(pods: Path) -> Problem:
    """The pods of a CSV file that ask for a part of one GPU (columns num_gpu, gpu_milli), as in
    Alibaba's trace of 2023 (Weng et al., "Beware of Fragmentation", ATC'23); thousandths of a GPU.
    """
    with pods.open(newline="") as lines:
        rows = csv.DictReader(lines)
        shares = [int(row["gpu_milli"]) for row in rows if row["num_gpu"] == "1"]
    counts = Counter(share for share in shares if 0 < share < 1000)
    items = tuple(
        Item(f"share-{share:04}", count, {"gpu": (share, 1)})
        for share, count in sorted(counts.items())
    )
    return Problem(_devices(sum(counts.values()), (1000, 1000)), items)


FAMILIES: dict[str, Callable[[random.Random], Vector]] = {
    "mix": mix,
    "half": half,
    "uniform": uniform,
    "anti-correlated": anti_correlated,
    "1-D": one_dimension,
}


def instance(family: str, replicas: int, models: int, seed: int) -> Problem:
    """As many devices as replicas: room is never short."""
    rng = random.Random(f"{family} {replicas} {models} {seed}")
    weights = [1 / (rank + 1) for rank in range(models)]
    extra = rng.choices(range(models), weights, k=max(0, replicas - models))
    counts = [1] * min(models, replicas)
    for index in extra:
        counts[index] += 1
    items = tuple(
        Item(f"model-{index:03}", count, {"gpu": FAMILIES[family](rng)})
        for index, count in enumerate(counts)
    )
    return Problem(_devices(replicas, DEVICE), items)


def _devices(count: int, size: Vector) -> tuple[Place, ...]:
    return tuple(
        Place(f"gpu-{index:05}", "gpu", f"host-{index // 8:04}", "a", size, 1_000_000, 1)
        for index in range(count)
    )


def _gb(gigabytes: float) -> int:
    return -int(-gigabytes // 1) * _GB
