"""Rules about names: what must be there once, and what is named after what."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.config.checked import Checked
from modelyard.config.explain import did_you_mean
from modelyard.config.faults import Fault
from modelyard.config.shells import INGRESS, SHELLS


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


def ingress_has_a_table(checked: Checked) -> Iterator[Fault]:
    for app in checked.apps:
        for path, deployment in app.deployments() if app.is_ingress else ():
            if deployment.user_config is None:
                yield checked.fault(
                    (*path, "user_config"),
                    "required and missing: the ingress takes the table here "
                    "(`schema: modelyard/table/v1`)",
                )
