"""One file, from a source to the disk: resumed, verified while it arrives, tried again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.manifest import File
from modelyard.artifacts.part import Part, Received
from modelyard.artifacts.source import Changed, Interrupted, Source
from modelyard.contract.errors import ArtifactError


class Stopped(ArtifactError):
    """Another file of the same version has failed, so this one is not needed."""


class StoredDamaged(ArtifactError):
    """What the store holds is not what the manifest lists, however often it is fetched."""


class _Wrong(ArtifactError):
    """The file arrived, and is not what the manifest lists."""


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a transfer behaves: the time, the chance and the listener, passed in.

    wait(seconds) answers True when the transfer is to stop. arrived: told of bytes that came, and
    with a negative count of those thrown away; called on several threads.
    """

    patience: Patience
    wait: Callable[[float], bool]
    random: Callable[[], float]
    arrived: Callable[[int], None]


def download(source: Source, file: File, part_path: Path, target: Path, conduct: Conduct) -> None:
    """Fetch `file` into `part_path`, and move it to `target` when its sha256 is the manifest's.

    Goes on from what an earlier run left in `part_path`. Raises ArtifactError: for contents that
    are wrong each time, for no progress over `patience.attempts`, and at once for what trying
    again cannot change. Holds one chunk in memory.
    """
    with Part(part_path) as part:
        conduct.arrived(part.size_bytes)
        receive(source, file, part, conduct)
        part.finish(target)


def receive(source: Source, file: File, part: Received, conduct: Conduct) -> None:
    """All of `file` into `part`, until its sha256 is right. Raises as `download`; it is a
    StoredDamaged for contents that are wrong each time."""
    patience = conduct.patience
    idle = wrong = 0
    while True:
        before = part.size_bytes
        try:
            _attempt(source, file, part, conduct)
            return
        except (Changed, _Wrong) as error:
            wrong += 1
            conduct.arrived(-part.size_bytes)
            part.restart()
            if wrong == patience.wrong_contents:
                raise StoredDamaged(
                    f"{error}; fetched {wrong} times: the stored file is damaged or was replaced: "
                    "push the whole version again with `modelyard models push --repair`"
                ) from error
        except Interrupted as error:
            idle = 0 if part.size_bytes > before else idle + 1
            if idle == patience.attempts:
                raise ArtifactError(
                    f"{error}; nothing arrived in {idle} attempts: check the store and the "
                    f"network, then start again: the {part.size_bytes} bytes that are here are kept"
                ) from error
            if conduct.wait(patience.backoff_s(max(idle, 1), conduct.random())):
                raise Stopped(f"{source.uri}/{file.path}: stopped") from error


def _attempt(source: Source, file: File, part: Received, conduct: Conduct) -> None:
    where = f"{source.uri}/{file.path}"
    if part.size_bytes < file.size_bytes:
        _read_on(source, file, part, conduct)
    if part.size_bytes < file.size_bytes:
        raise Interrupted(f"{where}: ended after {part.size_bytes} of {file.size_bytes} bytes")
    if (part.size_bytes, part.sha256) != (file.size_bytes, file.sha256):
        raise _Wrong(
            f"{where}: expected sha256 {file.sha256} of {file.size_bytes} bytes, "
            f"got {part.sha256} of {part.size_bytes} bytes"
        )


def _read_on(source: Source, file: File, part: Received, conduct: Conduct) -> None:
    start = part.size_bytes
    with source.open(file.path, start, part.tag if start else None) as body:
        if body.size_bytes != file.size_bytes:
            raise _Wrong(
                f"{source.uri}/{file.path}: expected {file.size_bytes} bytes, "
                f"got a file of {body.size_bytes} bytes"
            )
        if start == 0:
            part.begin(body.tag)
        for chunk in body.chunks:
            part.append(chunk)
            conduct.arrived(len(chunk))
            if conduct.wait(0):
                raise Stopped(f"{source.uri}/{file.path}: stopped")
