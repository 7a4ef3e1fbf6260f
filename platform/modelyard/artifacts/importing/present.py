"""The version that is there already: is it the same, and is it whole?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from modelyard.artifacts.importing.aside import replace_whole
from modelyard.artifacts.manifest import GOLDEN_NAME, Identity, Manifest, read_manifest
from modelyard.artifacts.package import write_manifest
from modelyard.artifacts.starter.folder import copy_file
from modelyard.artifacts.verify import Damaged, sha256_of, verify
from modelyard.contract.errors import ArtifactError


def same(target: Path, new: Manifest) -> Manifest:
    """The manifest of the version that is there, if it is of the same model.

    Golden answers are not compared: a second recording may differ in its last bits. Raises
    ArtifactError for another model, and for a folder whose manifest cannot be read.
    """
    try:
        there = read_manifest(target)
    except ArtifactError as error:
        raise ArtifactError(
            f"{target}: is there, and its manifest cannot be read ({error}): remove the folder, "
            "and import it again"
        ) from error
    ours, theirs = _without_golden(new), _without_golden(there)
    if ours != theirs:
        field = next(name for name in ours if ours[name] != theirs[name])
        raise ArtifactError(
            f"{target}: {there.full_name} is there with another {field}, and a version never "
            "changes: import it as a new --version"
        )
    return there


def damage_of(target: Path, manifest: Manifest) -> str | None:
    """What is wrong with a file of the version, every byte read; None when it is whole.

    Raises ArtifactError for what a new copy does not mend: a file that lies there too much, or one
    that may not be read.
    """
    try:
        verify(target, manifest)
    except ArtifactError as error:
        missing = any(not (target / file.path).exists() for file in manifest.files)
        if missing or isinstance(error, Damaged):
            return str(error)
        raise
    return None


def repair(
    target: Path,
    there: Manifest,
    folder: Path,
    identity: Identity,
    record: Callable[[Path], None] | None,
) -> None:
    """Put the new copy in `folder` in the damaged version's place, with the golden answers that
    are there; recorded again where those are damaged.

    Raises ArtifactError when its digest would be another: that version is what others pinned.
    """
    sha256, golden = there.warmup.golden_sha256, target / GOLDEN_NAME
    if sha256 is not None:
        if golden.is_file() and sha256_of(golden) == sha256:
            copy_file(golden, folder / GOLDEN_NAME)
        elif record is not None:
            record(folder)
    digest = write_manifest(folder, identity).digest()
    if digest != there.digest():
        raise ArtifactError(
            f"{target}: is damaged, and golden answers that are recorded now are others than those "
            f"it had, so its digest would be {digest} and no longer {there.digest()}: import it as "
            "a new --version"
        )
    replace_whole(folder, target)


def _without_golden(manifest: Manifest) -> dict[str, Any]:
    record = manifest.model_dump(mode="json")
    files = [file for file in record["files"] if file["path"] != GOLDEN_NAME]
    return record | {"files": files, "warmup": record["warmup"] | {"golden_sha256": None}}
