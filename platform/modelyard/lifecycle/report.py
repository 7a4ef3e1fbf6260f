"""What a replica posts about itself, and what a version can do."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.artifacts.manifest import Manifest
from modelyard.contract.operations import Kind
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase


@dataclass(frozen=True, slots=True)
class Description:
    """A version as callers see it. Fixed for the life of an app: it comes from the manifest.

    embedding_space: versions of one space give vectors that can be compared; None for a space of
    its own, and for what embeds nothing.
    """

    version: str
    kind: Kind
    digest: str
    max_context_tokens: int
    max_output_tokens: int | None
    embedding_space: str | None = None

    @classmethod
    def of(cls, manifest: Manifest) -> Description:
        return cls(
            version=manifest.full_name,
            kind=manifest.kind,
            digest=manifest.digest(),
            max_context_tokens=manifest.limits.max_context_tokens,
            max_output_tokens=manifest.limits.max_output_tokens,
            embedding_space=manifest.embedding_space,
        )

    @property
    def digest8(self) -> str:
        """The first 8 hex digits of the digest, which status and logs show."""
        return self.digest[:8]

    @property
    def fingerprint(self) -> str:
        """`name@version+digest8`, the system_fingerprint of answers."""
        return f"{self.version}+{self.digest8}"


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """One replica's state. `phases` are those done, with their seconds; `cause` explains Failed in
    words and `cause_kind` is the word that failures are counted by.

    slots: requests that it takes at once, its max_ongoing_requests. live: its watchdog's
    word on its progress; no downstream and no load has a part in it. fetched: bytes of the artifact
    that are here, and bytes in all, while they are fetched. stall_after_s: how long it may be busy
    without a step before its watchdog ends it; None before it is ready. place: its Ray node's label
    `modelyard/place`, "" without one. gpu_ids: the devices that Ray gave it. placement_group: Ray's
    id of the group that it runs in, "" without one.
    """

    app: str
    replica: str
    node: str
    pid: int
    phase: Phase
    phase_s: float
    phases: tuple[tuple[Phase, float], ...] = ()
    ongoing: int = 0
    slots: int = 0
    description: Description | None = None
    cause: str | None = None
    cause_kind: Cause | None = None
    live: bool = True
    fetched: tuple[int, int] | None = None
    stall_after_s: float | None = None
    place: str = ""
    gpu_ids: tuple[str, ...] = ()
    placement_group: str = ""

    @property
    def started(self) -> bool:
        """The startup probe: was it ever ready?"""
        return Phase.READY in (self.phase, *(phase for phase, _ in self.phases))

    @property
    def ready(self) -> bool:
        """The readiness probe: may it be sent a request? Overload has no part in it."""
        return self.phase is Phase.READY and self.live


@dataclass(frozen=True, slots=True)
class Post:
    """A report and how long ago the board received it, by the board's own clock."""

    report: ReplicaReport
    age_s: float
