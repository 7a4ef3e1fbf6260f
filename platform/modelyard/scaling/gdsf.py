"""What a loaded model is worth: greedy-dual-size-frequency (Cherkasova, HPL-98-69, 1998).

value = clock + requests x load seconds / gigabytes; the clock rises to the value of what is
evicted, so what was asked for long ago loses to what is asked for now. Least recently used alone
would evict a model that takes minutes to load for one that takes a second.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Worth:
    """Of the models of one area. hits: requests since each was loaded."""

    clock: float = 0.0
    hits: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)

    def of(self, version: str) -> float:
        return self.values.get(version, self.clock)

    def asked(self, version: str, requests: int, load_s: float, memory_gb: float) -> Worth:
        """After `requests` more. Its first look counts as one: the wish that brought it."""
        known = version in self.hits
        if known and requests <= 0:
            return self
        hits = self.hits.get(version, 1) + max(requests, 0)
        value = self.clock + hits * load_s / memory_gb
        return replace(
            self, hits={**self.hits, version: hits}, values={**self.values, version: value}
        )

    def evicted(self, version: str) -> Worth:
        return replace(self, clock=max(self.clock, self.of(version)))

    def only(self, versions: Collection[str]) -> Worth:
        """Without those that are not loaded any more."""
        return replace(
            self,
            hits={version: hits for version, hits in self.hits.items() if version in versions},
            values={
                version: value for version, value in self.values.items() if version in versions
            },
        )
