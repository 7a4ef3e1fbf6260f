"""Errors about the folder that is built aside, said of the source that a person knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modelyard.artifacts.importing.selection import CONFIG
from modelyard.artifacts.manifest import GOLDEN_NAME, MANIFEST_NAME
from modelyard.contract.errors import ArtifactError


@contextmanager
def said_of_source(folder: Path, source: str) -> Iterator[None]:
    """`folder` is gone when its error is read, and no source has a manifest."""
    try:
        yield
    except ArtifactError as error:
        raise ArtifactError(_said(str(error), str(folder), source)) from error


def _said(text: str, folder: str, source: str) -> str:
    for name, called in ((MANIFEST_NAME, "the manifest"), (GOLDEN_NAME, "the golden answers")):
        text = text.replace(f"{folder}/{name}", called)
    path = Path(source).expanduser()
    if (path / CONFIG).is_file():
        return text.replace(folder, str(path))
    # What a hub, a .gguf or a LoRA gave is not at any path of its own.
    return text.replace(f"{folder}/", f"{source}: ").replace(folder, source)
