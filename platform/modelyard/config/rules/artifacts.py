"""Rules that look at the artifacts on this machine."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.config.checked import App, Checked
from modelyard.config.faults import Fault
from modelyard.config.shells import SHELLS
from modelyard.contract.errors import ModelyardError


def artifacts_fit(checked: Checked) -> Iterator[Fault]:
    """Each model's manifest is there, of the app's kind and name, and allows what routes offer."""
    for app in checked.models:
        if app.artifact is None:
            continue
        try:
            manifest = read_manifest(checked.resolve(app.artifact))
        except (ModelyardError, ValueError) as error:  # ValueError: urlsplit, on an odd address
            yield checked.fault((*app.path, "args", "artifact"), str(error))
            continue
        yield from _identity(checked, app, manifest)
        yield from _limits(checked, app, manifest)


def _identity(checked: Checked, app: App, manifest: Manifest) -> Iterator[Fault]:
    if app.shell is not None and manifest.kind is not app.shell.kind:
        fitting = next(path for path, shell in SHELLS.items() if shell.kind is manifest.kind)
        yield checked.fault(
            (*app.path, "import_path"), f"the artifact is a {manifest.kind}: write {fitting}"
        )
    if manifest.full_name != app.artifact_name:
        yield checked.fault(
            (*app.path, "args", "artifact"),
            f"the manifest in this folder is of {manifest.full_name}: give the folder of the "
            "version that you mean",
        )


def _limits(checked: Checked, app: App, manifest: Manifest) -> Iterator[Fault]:
    allowed = manifest.limits.max_output_tokens
    for alias, route in checked.routes_to(app):
        asked = route.limits.max_output_tokens
        if allowed is not None and asked > allowed:
            own = "max_output_tokens" in route.limits.model_fields_set
            given = "" if own else f"missing, and the default is {asked}: "
            yield checked.fault(
                (*checked.table_path, "routes", alias, "limits", "max_output_tokens"),
                f"{given}above the {allowed} tokens that {manifest.full_name} allows: set at most "
                "that",
            )
