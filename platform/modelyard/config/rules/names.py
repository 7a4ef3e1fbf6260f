"""Rules about names: what must be there once, and what must lead somewhere."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.config.checked import Checked
from modelyard.config.explain import did_you_mean
from modelyard.config.faults import Fault, Severity, YamlPath
from modelyard.config.routes import Route
from modelyard.config.shells import INGRESS, SHELLS
from modelyard.contract.operations import Kind


def import_paths_are_ours(checked: Checked) -> Iterator[Fault]:
    """A foreign app in this file would listen on all interfaces in HAProxy mode, unprotected."""
    for app in checked.apps:
        if app.shell is None:
            near = did_you_mean(app.options.import_path, SHELLS)
            advice = near or f"use one of {', '.join(SHELLS)}"
            yield checked.fault(
                (*app.path, "import_path"), f"not an app that modelyard ships: {advice}"
            )


def app_names_are_unique(checked: Checked) -> Iterator[Fault]:
    seen: set[str] = set()
    for app in checked.apps:
        if app.options.name in seen:
            yield checked.fault(
                (*app.path, "name"), "another app has this name: rename or remove one of them"
            )
        seen.add(app.options.name)


def there_is_one_ingress(checked: Checked) -> Iterator[Fault]:
    ingresses = [app for app in checked.apps if app.is_ingress]
    if not ingresses:
        yield checked.fault(
            ("applications",), f"no app has the import_path {INGRESS}: add the ingress"
        )
    for app in ingresses[1:]:
        yield checked.fault(
            app.path, "a second ingress app: keep one, and raise its num_replicas to get more"
        )


def only_the_ingress_has_a_route(checked: Checked) -> Iterator[Fault]:
    for app in checked.apps:
        path = (*app.path, "route_prefix")
        prefix = app.options.route_prefix
        if app.is_ingress and prefix != "/":
            yield checked.fault(path, 'the ingress answers on "/": write `route_prefix: /`')
        elif (app.holds_model or app.is_control) and prefix is not None:
            implied = "route_prefix" not in app.options.model_fields_set
            why = "missing, and Serve's default is /" if implied else "only the ingress has a route"
            yield checked.fault(path, f"{why}: write `route_prefix: null`")


def deployments_are_the_expected(checked: Checked) -> Iterator[Fault]:
    for app in checked.apps:
        if app.shell is None:
            continue
        expected = app.shell.deployment
        found = [deployment.name for _, deployment in app.deployments()]
        for path, deployment in app.deployments():
            if deployment.name != expected:
                yield checked.fault(
                    (*path, "name"),
                    f"{app.options.import_path} has one deployment, {expected}: write that name",
                )
        if found.count(expected) > 1:
            yield checked.fault(
                (*app.path, "deployments"), f"{expected} is listed twice: merge the entries"
            )
        if not found:
            yield checked.fault(
                (*app.path, "deployments"),
                f"required and missing: add the options of {expected} "
                "(max_ongoing_requests, graceful_shutdown_timeout_s, replicas)",
            )


def apps_are_named_after_artifacts(checked: Checked) -> Iterator[Fault]:
    for app in checked.models:
        if app.artifact is None:
            continue
        if app.artifact_name is None:
            yield checked.fault(
                (*app.path, "args", "artifact"),
                "must end in /<name>/<version>: give the folder of one version",
            )
        elif app.version != app.artifact_name:
            yield checked.fault(
                (*app.path, "name"),
                f"must be the artifact's name@version: write {app.artifact_name}, or change the "
                "artifact",
            )


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
            yield checked.fault(
                path,
                "nothing is ever sent to it: vectors of two embedders cannot be compared; give "
                "it an alias of its own",
                Severity.WARNING,
            )


def dedicated_cells_are_there(checked: Checked) -> Iterator[Fault]:
    """The constraint's tenants may go nowhere else, so a version without the cell refuses them."""
    apps = {app.options.name for app in checked.apps}
    for alias, route in checked.all_routes:
        for index, constraint in enumerate(route.constraints):
            named = (route.stable, route.canary, constraint.failover)
            for version in dict.fromkeys(named) if constraint.cell is not None else ():
                wanted = f"{version}--{constraint.cell}"
                if version is not None and wanted not in apps:
                    yield checked.fault(
                        (*checked.table_path, "routes", alias, "constraints", index, "cell"),
                        f"no app of this file is named {wanted}: add it, or drop the cell",
                    )


def _named(checked: Checked) -> Iterator[tuple[YamlPath, str, Route]]:
    """Where a route names a version, that version, and the route."""
    for alias, route in checked.all_routes:
        path: YamlPath = (*checked.table_path, "routes", alias)
        yield (*path, "stable"), route.stable, route
        if route.canary is not None:
            yield (*path, "canary"), route.canary, route
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


def ingress_has_a_table(checked: Checked) -> Iterator[Fault]:
    for app in checked.apps:
        for path, deployment in app.deployments() if app.is_ingress else ():
            if deployment.user_config is None:
                yield checked.fault(
                    (*path, "user_config"),
                    "required and missing: the ingress takes the table here "
                    "(`schema: modelyard/table/v1`)",
                )
