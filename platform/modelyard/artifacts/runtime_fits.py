"""Is what is installed here the runtime that a version was made for?"""

from __future__ import annotations

from collections.abc import Callable

from packaging.specifiers import SpecifierSet

from modelyard.artifacts.installed import ENGINE_DISTRIBUTIONS
from modelyard.artifacts.manifest import MANIFEST_NAME, Manifest
from modelyard.contract.errors import ArtifactError


def require_runtime(
    manifest: Manifest, installed: Callable[[str], str | None], image: str | None
) -> None:
    """Raise ArtifactError when runtime.version or runtime.image is not what runs here.

    installed: a distribution's version, None when it is not there. image: what this process runs
    in, by digest (MODELYARD_IMAGE); None when nobody said, and then any image is taken.
    """
    where = f"{MANIFEST_NAME} of {manifest.full_name}"
    runtime = manifest.runtime
    names = ENGINE_DISTRIBUTIONS[runtime.engine]
    found = next(((name, version) for name in names if (version := installed(name))), None)
    if found is None:
        raise ArtifactError(
            f"{where}: runtime.engine: expected {' or '.join(names)}, got none installed: install "
            "what requirements/*.txt names"
        )
    name, version = found
    # A release candidate that somebody installed was meant, so it is compared like any other.
    if runtime.version and not SpecifierSet(runtime.version).contains(version, prereleases=True):
        raise ArtifactError(
            f"{where}: runtime.version: expected {runtime.engine} {runtime.version}, got {name} "
            f"{version}: install a release that fits, or package a version that was tried on this "
            "one"
        )
    if runtime.image and image and runtime.image != image:
        raise ArtifactError(
            f"{where}: runtime.image: expected {runtime.image}, got {image}: run that image, or "
            "package a version that was tried on this one"
        )
