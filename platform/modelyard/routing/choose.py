"""Which of several replicas, or cells, answers: affinity as a preference bounded by load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Final, NamedTuple

STALE_S: Final = 5.0  # of what is known about a candidate; replicas post each second
# A candidate is within its bound while its share of use is below BALANCE times the average, or
# below FREE. Found by simulation (tests/routing/test_affinity_simulation.py: 6 replicas of 24).
# BALANCE: half used by 240 tenants, 1.25 (usual for web caches) keeps 0.87 of hits, 1.5 keeps 0.93
# and 2 keeps 0.95; but of two replicas a bound of twice the average is no bound at all. The seeds'
# "more than 6 waiting" would say nothing here: requests wait in the ingress. FREE is for the quiet
# fleet, where one request is already above the average: without it 0.76 of hits, with it 0.95.
BALANCE: Final = 1.5
FREE: Final = 0.25


class Candidate(NamedTuple):
    """A replica or a cell. load: the requests it has, of the capacity it may have."""

    id: str
    load: float
    capacity: float
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """Positions in the candidates. `preferred` would hold the key's cache, None without a key."""

    chosen: int
    preferred: int | None = None

    @property
    def spilled(self) -> bool:
        return self.preferred is not None and self.preferred != self.chosen


def choose(candidates: Sequence[Candidate], key: str, rng: Random) -> Choice:
    """The candidate for a request. Raises ValueError for no candidates.

    With a key: weighted rendezvous hashing (Schindelhauer and Schomaker 2005) bounded by load. The
    first in hash order within its bound answers, of the first two: a hot key warms a second
    candidate, always the same. After that the least used: further down the order it would push
    other keys off their own candidates (simulated: 0.90 of hits, and 0.93 with the least used).
    Without a key: the less used of two. What is stale or full is chosen only where nothing else is
    left.
    """
    if not candidates:
        raise ValueError("choose needs a candidate")
    fresh = [n for n, one in enumerate(candidates) if one.age_s < STALE_S]
    with_room = [n for n in fresh if candidates[n].load < candidates[n].capacity]
    among = with_room or fresh or range(len(candidates))
    if not key:
        return Choice(_less_used_of_two(candidates, among, rng))
    bound = _bound(candidates, fresh or among)
    first, second = _first_two(candidates, fresh or among, key)
    for n in (first, second):
        if n in among and _used(candidates[n]) < bound:
            return Choice(n, first)
    return Choice(min(among, key=lambda n: _used(candidates[n])), first)


def _first_two(candidates: Sequence[Candidate], among: Sequence[int], key: str) -> tuple[int, int]:
    """The two highest hashes; one twice if there is but one. Not a sort: this runs per request."""
    first = second = among[0]
    top = next_ = -math.inf
    for n in among:
        score = weighted_hash(key, candidates[n].id, candidates[n].capacity)
        if score > top:
            first, top, second, next_ = n, score, first, top
        elif score > next_:
            second, next_ = n, score
    return first, second


def weighted_hash(key: str, candidate: str, weight: float) -> float:
    """A score by which each candidate is first for a share of keys in proportion to its weight.

    -weight / ln(u) with u uniform in (0, 1) from the key and the candidate. Not Python's hash,
    which differs between processes.
    """
    digest = blake2b(f"{key}\0{candidate}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    # 53 bits, which a float holds exactly, and a half so that neither 0 nor 1 comes out.
    u = ((int.from_bytes(digest, "big") >> 11) + 0.5) / 2**53
    return max(weight, 1e-9) / -math.log(u)


def _bound(candidates: Sequence[Candidate], among: Sequence[int]) -> float:
    """As a share of use. With the request itself counted, or an idle fleet's bound would be 0."""
    load = sum(candidates[n].load for n in among) + 1
    capacity = sum(candidates[n].capacity for n in among)
    return max(FREE, BALANCE * load / max(capacity, 1e-9))


def _used(one: Candidate) -> float:
    return one.load / max(one.capacity, 1e-9)


def _less_used_of_two(candidates: Sequence[Candidate], among: Sequence[int], rng: Random) -> int:
    """Nearly as even as the least used of all, and two ingresses do not stampede to one."""
    if len(among) == 1:
        return among[0]
    first = int(rng.random() * len(among))
    second = int(rng.random() * (len(among) - 1))
    second += second >= first
    return min(among[first], among[second], key=lambda n: _used(candidates[n]))
