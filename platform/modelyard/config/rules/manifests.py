"""The manifests that a file's apps name, as far as this machine holds them."""

from __future__ import annotations

from typing import Final

from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.config.checked import App, Checked
from modelyard.contract.errors import ModelyardError

_REMOTE: Final = "s3://"


def is_remote(app: App) -> bool:
    return app.artifact is not None and app.artifact.startswith(_REMOTE)


def load_manifest(checked: Checked, app: App) -> Manifest | None:
    """None for an app without an artifact, and for one in a bucket: a check needs no network.

    Raises ModelyardError, or ValueError for an address that is none.
    """
    if app.artifact is None or is_remote(app):
        return None
    return read_manifest(checked.resolve(app.artifact))


def manifest_of(checked: Checked, app: App) -> Manifest | None:
    """The same, None where it cannot be read: `artifacts_fit` says so, once."""
    try:
        return load_manifest(checked, app)
    except (ModelyardError, ValueError):
        return None
