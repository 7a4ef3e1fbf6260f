"""Requests that killed two replicas, and are refused everywhere for a while."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

from modelyard.contract.envelope import Envelope

REFUSED_FOR_S: Final = 600.0
MAX_DIGESTS: Final = 10_000


def digest_of(envelope: Envelope, tenant: str) -> str:
    """What a request is, whoever carries it: the same question of another tenant is another.

    So a tenant can get only its own requests refused.
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in (tenant, envelope.version, envelope.operation):
        digest.update(part.encode() + b"\0")
    digest.update(envelope.body)
    return digest.hexdigest()


class RefusedDigests:
    """Digests by the time they were refused. Ages cross processes, times never do."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, digest: str) -> bool:
        since = self._since.get(digest)
        return since is not None and self._now() - since < REFUSED_FOR_S

    def refuse(self, digest: str) -> None:
        self.merge({digest: 0.0})

    def merge(self, ages_s: Mapping[str, float]) -> None:
        """Take what another process refuses. The older sighting counts, so that none is renewed."""
        now = self._now()
        self._forget(now)
        for digest, age_s in ages_s.items():
            since = now - age_s
            self._since[digest] = min(since, self._since.get(digest, since))

    def ages_s(self) -> dict[str, float]:
        """Seconds since each digest in force was refused."""
        now = self._now()
        self._forget(now)
        return {digest: now - since for digest, since in self._since.items()}

    def _forget(self, now: float) -> None:
        in_force = {key: at for key, at in self._since.items() if now - at < REFUSED_FOR_S}
        youngest = sorted(in_force, key=in_force.__getitem__, reverse=True)[:MAX_DIGESTS]
        self._since = {digest: in_force[digest] for digest in youngest}
