"""Rules that look at the artifacts on this machine."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.artifacts.manifest import GOLDEN_NAME, Manifest
from modelyard.config.checked import App, Checked
from modelyard.config.faults import Fault, Severity
from modelyard.config.model_args import GeneratorArgs, ModelArgs
from modelyard.config.rules.engine import gpus_of
from modelyard.config.rules.manifests import is_remote, load_manifest, manifest_of
from modelyard.config.shells import SHELLS
from modelyard.contract.errors import ModelyardError


def artifacts_fit(checked: Checked) -> Iterator[Fault]:
    """Each model's manifest is there, of the app's kind and name, and allows what routes offer."""
    for app in checked.models:
        try:
            manifest = load_manifest(checked, app)
        except (ModelyardError, ValueError) as error:  # ValueError: urlsplit, on an odd address
            yield checked.fault((*app.path, "args", "artifact"), str(error))
            continue
        if is_remote(app):
            yield checked.fault(
                (*app.path, "args", "artifact"),
                "not looked at, since a check needs no network: `modelyard models show` reads it",
                Severity.WARNING,
            )
        if manifest is not None:
            yield from _identity(checked, app, manifest)
            yield from _limits(checked, app, manifest)
            yield from _golden(checked, app, manifest)


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
    pinned = app.args.digest if isinstance(app.args, ModelArgs) else None
    if pinned is not None and pinned != manifest.digest():
        yield checked.fault(
            (*app.path, "args", "digest"),
            f"the manifest in this folder has the digest {manifest.digest()}: write that if you "
            "mean it, or put the version that you pinned back",
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


def _golden(checked: Checked, app: App, manifest: Manifest) -> Iterator[Fault]:
    if manifest.warmup.golden_sha256 is None:
        yield checked.fault(
            (*app.path, "args", "artifact"),
            f"{manifest.full_name} has no {GOLDEN_NAME}, so a replica that computes wrongly "
            "would serve: import it again (`modelyard models import` records one) as "
            "a new version",
            Severity.WARNING,
        )


def accelerators_are_given(checked: Checked) -> Iterator[Fault]:
    """A replica gets the accelerators that its version was packaged for, and uses all of them."""
    for app in checked.models:
        manifest = manifest_of(checked, app)
        if manifest is None or manifest.device.accelerators == 0:
            continue
        needed = manifest.device.accelerators
        given = max((gpus_of(deployment) for _, deployment in app.deployments()), default=0.0)
        if given < needed:
            yield checked.fault(
                app.path,
                f"{manifest.full_name} needs {needed} accelerators (device.accelerators), and the "
                f"deployment asks for {given:g}: set `ray_actor_options: {{num_gpus: {needed}}}`, "
                "or package a version for CPU with device.accelerators 0",
            )
        args = app.args
        if isinstance(args, GeneratorArgs) and (args.engine.tensor_parallel_size or 1) < needed:
            yield checked.fault(
                (*app.path, "args", "engine", "tensor_parallel_size"),
                f"{manifest.full_name} is spread over {needed} accelerators "
                f"(device.accelerators): write {needed}",
            )
