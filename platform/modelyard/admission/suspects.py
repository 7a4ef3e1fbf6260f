"""Requests under which replicas died, and which of them are refused for a while.

Nobody can tell which of the requests on a replica killed it. So each death is kept with all that
died in it, and a request is refused for ten minutes from its second death on; from its third where
one of them took a crowd, most of which only stood beside the one that kills.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from modelyard.contract.envelope import Envelope
from modelyard.contract.operations import Operation

KEPT_S: Final = 600.0
CROWD: Final = 8  # requests in one death
MAX_DEATHS: Final = 256
MAX_DIGESTS: Final = 1024  # of one death
# Of the native body: they differ each time that the same thing is asked.
_PASSING: Final = ("conversation_id", "deadline_ms")

# What crosses processes, by replica: seconds since it died, and how many requests of each digest.
Deaths = Mapping[str, tuple[float, Mapping[str, int]]]


def digest_of(envelope: Envelope, tenant: str) -> str:
    """What a request asks, whoever carries it: the same of another tenant is another.

    So a tenant can get only its own requests refused.
    """
    body = envelope.body
    if envelope.operation == Operation.GENERATE:
        record: dict[str, Any] = json.loads(body)
        for name in _PASSING:
            record.pop(name, None)
        body = json.dumps(record).encode()
    digest = hashlib.blake2b(digest_size=16)
    for part in (tenant, envelope.version, envelope.operation):
        digest.update(part.encode() + b"\0")
    digest.update(body)
    return digest.hexdigest()


@dataclass(slots=True)
class _Death:
    at: float
    requests: dict[str, int] = field(default_factory=dict)

    @property
    def is_crowd(self) -> bool:
        return sum(self.requests.values()) > CROWD


class Suspects:
    """The deaths of the last ten minutes. Ages cross processes, times never do."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._deaths: dict[str, _Death] = {}

    def __bool__(self) -> bool:
        return bool(self._deaths)

    def refuses(self, digest: str) -> bool:
        self._forget()
        deaths = [death for death in self._deaths.values() if digest in death.requests]
        needed = 3 if any(death.is_crowd for death in deaths) else 2
        return len(deaths) >= needed

    def died(self, replica: str, digest: str) -> None:
        """Note that a request was on a replica when it died."""
        self._forget()
        death = self._deaths.setdefault(replica, _Death(self._now()))
        if digest in death.requests or len(death.requests) < MAX_DIGESTS:
            death.requests[digest] = death.requests.get(digest, 0) + 1
        self._forget()

    def merge(self, deaths: Deaths) -> None:
        """Take what another process saw. The earlier time counts, so that none is renewed."""
        self._forget()
        now = self._now()
        for replica, (age_s, requests) in deaths.items():
            death = self._deaths.setdefault(replica, _Death(now - age_s))
            death.at = min(death.at, now - age_s)
            for digest, count in requests.items():
                death.requests[digest] = max(count, death.requests.get(digest, 0))
        self._forget()

    def deaths(self) -> dict[str, tuple[float, dict[str, int]]]:
        self._forget()
        now = self._now()
        return {
            replica: (now - death.at, dict(death.requests))
            for replica, death in self._deaths.items()
        }

    def _forget(self) -> None:
        now = self._now()
        if self._deaths:
            recent = [(r, d) for r, d in self._deaths.items() if now - d.at < KEPT_S]
            recent.sort(key=lambda one: one[1].at)
            self._deaths = dict(recent[-MAX_DEATHS:])
