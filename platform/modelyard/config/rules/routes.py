"""Rules about routes: every version that one names is an app that can answer it."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.config.checked import Checked
from modelyard.config.explain import did_you_mean
from modelyard.config.faults import Fault, Severity, YamlPath
from modelyard.config.routes import Route
from modelyard.config.rules.manifests import manifest_of
from modelyard.contract.operations import Kind


def aliases_lead_to_apps(checked: Checked) -> Iterator[Fault]:
    # An app with a wrong import_path counts: that fault is told once, where it is.
    versions = {app.version for app in checked.apps if not app.is_ingress}
    for path, version, _ in _named(checked):
        if version not in versions:
            near = did_you_mean(version, versions)
            yield checked.fault(
                path, f"no app of this file has that name: {near or 'add the app, or drop it here'}"
            )


def arms_are_of_one_kind(checked: Checked) -> Iterator[Fault]:
    """Nothing falls back or is split across kinds, and an embedder not at all."""
    kinds = {app.version: app.shell.kind for app in checked.models if app.shell is not None}
    spaces = _embedding_spaces(checked)
    for path, version, route in _named(checked):
        kind, stable = kinds.get(version), kinds.get(route.stable)
        if version == route.stable or kind is None or stable is None:
            continue
        if kind is not stable:
            yield checked.fault(
                path,
                f"its kind is {kind}, that of {route.stable} is {stable}: name another {stable}",
            )
        elif kind is Kind.EMBEDDER:
            yield _second_embedder(checked, path, spaces.get(version), spaces.get(route.stable))


def _second_embedder(
    checked: Checked, path: YamlPath, own: str | None, stable: str | None
) -> Fault:
    of_overload = path[-1] == "fallback"
    instead = "remove it" if of_overload else "give it an alias of its own"
    if own is not None and stable is not None and own != stable:
        return checked.fault(
            path,
            f"its embedding_space is {own}, that of the stable version is {stable}, and their "
            f"vectors cannot be compared: {instead}",
        )
    return checked.fault(
        path,
        f"nothing is ever sent to it: vectors of two embedders cannot be compared; {instead}",
        Severity.ERROR if of_overload else Severity.WARNING,
    )


def _embedding_spaces(checked: Checked) -> dict[str, str | None]:
    manifests = {app.version: manifest_of(checked, app) for app in checked.models}
    return {
        version: manifest.embedding_space
        for version, manifest in manifests.items()
        if manifest is not None
    }


def dedicated_cells_are_there(checked: Checked) -> Iterator[Fault]:
    """The constraint's tenants may go nowhere else, so a version without the cell refuses them."""
    apps = {app.options.name for app in checked.apps}
    for alias, route in checked.all_routes:
        for index, constraint in enumerate(route.constraints):
            path: YamlPath = (*checked.table_path, "routes", alias, "constraints", index, "cell")
            named = (route.stable, route.canary, constraint.failover)
            for version in dict.fromkeys(named) if constraint.cell is not None else ():
                wanted = f"{version}--{constraint.cell}"
                if version is not None and wanted not in apps:
                    yield checked.fault(
                        path, f"no app of this file is named {wanted}: add it, or drop the cell"
                    )
            fallback = route.overload.fallback
            wanted = f"{fallback}--{constraint.cell}"
            if fallback and constraint.cell and fallback not in named and wanted not in apps:
                # Not an error: under overload they get a 503, as they would without a fallback.
                yield checked.fault(
                    path,
                    f"no app of this file is named {wanted}, so these tenants get no fallback: add "
                    "it if they should",
                    Severity.WARNING,
                )


def _named(checked: Checked) -> Iterator[tuple[YamlPath, str, Route]]:
    """Where a route names a version, that version, and the route."""
    for alias, route in checked.all_routes:
        path: YamlPath = (*checked.table_path, "routes", alias)
        yield (*path, "stable"), route.stable, route
        if route.canary is not None:
            yield (*path, "canary"), route.canary, route
        if route.overload.fallback is not None:
            yield (*path, "overload", "fallback"), route.overload.fallback, route
        for index, constraint in enumerate(route.constraints):
            if constraint.failover is not None:
                yield (*path, "constraints", index, "failover"), constraint.failover, route


def models_are_used(checked: Checked) -> Iterator[Fault]:
    for app in checked.models if checked.table else ():
        if not checked.routes_to(app):
            yield checked.fault(
                (*app.path, "name"),
                "no alias leads to this app: it holds memory for nobody; add a route, or remove it",
                Severity.WARNING,
            )
