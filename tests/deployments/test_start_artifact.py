"""A replica's copy of its version: fetched again when it is damaged, and only then."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deployments import start
from modelyard.artifacts.manifest import Manifest
from modelyard.artifacts.verify import Damaged
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import a_manifest


@dataclass
class Copy:
    """What is held of the node's cache."""

    manifest: Manifest = field(default_factory=a_manifest)
    folder: Path = Path("cache")
    thrown_away: bool = False
    closed: bool = False

    def discard(self) -> bool:
        self.thrown_away = True
        return True

    def close(self) -> None:
        self.closed = True


def starting(
    monkeypatch: pytest.MonkeyPatch, errors: list[ArtifactError | None]
) -> tuple[list[Copy], Any]:
    """The copies that are fetched, and the start's way to one that is right: each `verify` raises
    the next of `errors`."""
    copies: list[Copy] = []

    async def fetched(*_: Any) -> Copy:
        copies.append(Copy())
        return copies[-1]

    def verify(*_: Any) -> None:
        if (error := errors.pop(0)) is not None:
            raise error

    monkeypatch.setattr(start, "_fetched", fetched)
    monkeypatch.setattr(start, "verify", verify)
    monkeypatch.setattr(start, "verify_contents", lambda *_: None)
    monkeypatch.setattr(start, "require_runtime", lambda *_: None)
    settings: Any = SimpleNamespace(image=None)
    reporter: Any = SimpleNamespace(enter=lambda phase: None)
    args: Any = SimpleNamespace()
    replica: Any = SimpleNamespace(app="tiny@1.0.0", drain_s=3600.0)
    return copies, start._artifact(Kind.EMBEDDER, args, settings, replica, reporter)


async def test_a_damaged_copy_is_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    copies, artifact = starting(monkeypatch, [Damaged("other bytes"), None])
    assert await artifact is copies[1]
    assert (copies[0].thrown_away, copies[0].closed) == (True, True)
    assert (copies[1].thrown_away, copies[1].closed) == (False, False)


async def test_a_copy_that_others_use_stays_when_it_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies, artifact = starting(monkeypatch, [ArtifactError("too many open files")])
    with pytest.raises(ArtifactError, match="too many open files"):
        await artifact
    assert [copy.thrown_away for copy in copies] == [False]
