"""Where versions are kept for others: `<root>/<name>/<version>/`, in a folder or a bucket.

A version is there when its manifest.json is; that is written last, and never over another.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.artifacts.source import Stored
from modelyard.artifacts.store import resolve
from modelyard.artifacts.transfer import Progress
from modelyard.artifacts.verify import verify
from modelyard.contract.errors import ArtifactError, ConfigError

_FORMS: Final = "write file:///absolute/folder or s3://bucket/prefix"


@dataclass(frozen=True, slots=True)
class Pushed:
    """made: False when the version was there already. sent_again: its files that were missing or
    damaged in the store, and now are not."""

    uri: str
    manifest: Manifest
    made: bool
    sent_again: tuple[str, ...] = ()


class Store(Protocol):
    """Raises ArtifactError for what is missing, damaged or not permitted, Interrupted for a store
    that does not answer."""

    @property
    def uri(self) -> str: ...

    def names(self) -> list[str]: ...

    def versions(self, name: str) -> list[str]: ...

    def find(self, name: str, version: str) -> Stored: ...

    def push(self, folder: Path, progress: Progress, *, repair: bool = False) -> Pushed:
        """Refuses a folder that does not verify, and other bytes under a version that is there.

        Of the same version that is there, files that are missing or of another size are sent
        again; with `repair` every stored byte is read, and files with another sha256 too. That
        changes no version: the bytes sent are the ones that its manifest names.
        """
        ...


def open_store(uri: str, home: Path | None = None, patience: Patience | None = None) -> Store:
    """The store at `uri`. Raises ConfigError for an address that names none; asks nothing yet."""
    # Each loads what the other does not need: boto3 alone takes a quarter of a second.
    if uri.startswith("s3:"):
        from modelyard.artifacts.s3_store import S3Store, split_bucket

        bucket, prefix = split_bucket(uri)
        return S3Store(bucket, prefix, patience or Patience())
    if uri.startswith("file:"):
        from modelyard.artifacts.file_store import FileStore

        return FileStore(resolve(uri, home))
    raise ConfigError(f"store {uri!r}: not an address of a store: {_FORMS}")


def split_version(uri: str) -> tuple[str, str, str]:
    """The store, the name and the version that an artifact's address is of."""
    root, _, version = uri.rstrip("/").rpartition("/")
    root, _, name = root.rpartition("/")
    if not (root.partition("://")[2] and name and version):
        raise ConfigError(
            f"artifact {uri!r}: write file:///folder/NAME/VERSION or s3://bucket/prefix/NAME/VERSION"
        )
    return root, name, version


def find_version(uri: str, home: Path | None = None) -> Stored:
    """The version at an address, its manifest read."""
    root, name, version = split_version(uri)
    return open_store(root, home).find(name, version)


def packaged(folder: Path) -> Manifest:
    """The manifest of a folder that verifies, hashes too: where the version is in the store
    already, no file of the folder may be read again."""
    # It needs numpy, which who only fetches need not load.
    from modelyard.artifacts.contents import verify_contents

    manifest = read_manifest(folder)
    verify(folder, manifest)
    verify_contents(folder, manifest)
    return manifest


def expect_same(uri: str, found: Manifest, pushed: Manifest) -> None:
    """Of what a push meets under its version. Raises ArtifactError for another manifest."""
    if found.digest() != pushed.digest():
        raise ArtifactError(
            f"{uri}: holds the manifest digest {found.digest()}, the folder's is "
            f"{pushed.digest()}: a version never changes, package the folder under a new version"
        )


def check_identity(uri: str, manifest: Manifest, name: str, version: str) -> None:
    """Raises ArtifactError for a manifest that lies under another version's name."""
    if (manifest.name, manifest.version) != (name, version):
        raise ArtifactError(
            f"{uri}: expected the manifest of {name}@{version}, got {manifest.full_name}: the "
            "store was changed by hand, push the version again"
        )
