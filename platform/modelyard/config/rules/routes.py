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
    """Nothing falls back or is split across kinds, and embedders only within one space."""
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
        elif kind is Kind.EMBEDDER and path[-1] == "canary":
            # Of an artifact that cannot be read here nothing is known; `artifacts_fit` says that.
            if version in spaces and route.stable in spaces:
                yield from _two_spaces(checked, path, spaces[version], spaces[route.stable])
        elif kind is Kind.EMBEDDER:
            yield _second_embedder(checked, path)


def _two_spaces(
    checked: Checked, path: YamlPath, own: str | None, stable: str | None
) -> Iterator[Fault]:
    if own is None or own != stable:
        yield checked.fault(
            path,
            f"its embedding_space is {own or 'not given'}, that of the stable version is "
            f"{stable or 'not given'}, and only vectors of one space can be compared: give it an "
            "alias of its own, or package both with the space that they share",
        )


def _second_embedder(checked: Checked, path: YamlPath) -> Fault:
    """A failover or fallback is chosen in a hurry, maybe for half of a corpus: nobody does."""
    of_overload = path[-1] == "fallback"
    return checked.fault(
        path,
        "nothing is ever sent to it: an embedder has no stand-in; "
        + ("remove it" if of_overload else "give it an alias of its own"),
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
