"""A Serve file taken apart once, so that each rule is a few lines over typed values."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from modelyard.config.document import Document
from modelyard.config.explain import explain
from modelyard.config.faults import Fault, Severity, YamlPath
from modelyard.config.frozen import Frozen
from modelyard.config.routes import Route
from modelyard.config.serve_file import Application, Deployment, ServeFile
from modelyard.config.shells import CONTROL, INGRESS, SHELLS, Shell
from modelyard.config.table import Table

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class App:
    """One application: its place in the file, its options and, if it is one of ours, its shell.

    args: what the shell is given, None where they are at fault.
    """

    path: YamlPath
    options: Application
    shell: Shell | None
    args: Frozen | None

    @property
    def is_ingress(self) -> bool:
        return self.options.import_path == INGRESS

    @property
    def is_control(self) -> bool:
        return self.options.import_path == CONTROL

    @property
    def holds_model(self) -> bool:
        return self.shell is not None and self.shell.kind is not None

    @property
    def artifact(self) -> str | None:
        """`args.artifact` of a model."""
        return getattr(self.args, "artifact", None)

    @property
    def version(self) -> str:
        """`name@version`; a further cell of a version adds `--b` to the app's name."""
        return self.options.name.partition("--")[0]

    @property
    def artifact_name(self) -> str | None:
        """`name@version` as the last two parts of the artifact's path say."""
        parts = PurePosixPath(self.artifact or "").parts
        return "@".join(parts[-2:]) if len(parts) > 2 else None

    def deployments(self) -> Iterator[tuple[YamlPath, Deployment]]:
        """Path and options of each deployment listed for this app."""
        for index, deployment in enumerate(self.options.deployments):
            yield (*self.path, "deployments", index), deployment


@dataclass(frozen=True, slots=True)
class Checked:
    """What the rules look at. table is None when it is missing or at fault.

    resolve: from an artifact's address to a folder here; raises ModelyardError for one it cannot.
    """

    document: Document
    serve: ServeFile
    apps: tuple[App, ...]
    table: Table | None
    table_path: YamlPath
    resolve: Callable[[str], Path]

    @property
    def models(self) -> tuple[App, ...]:
        return tuple(app for app in self.apps if app.holds_model)

    @property
    def all_routes(self) -> tuple[tuple[str, Route], ...]:
        return tuple(self.table.routes.items()) if self.table else ()

    def routes_to(self, app: App) -> tuple[tuple[str, Route], ...]:
        """Aliases that lead to this app, as any of their versions, and their routes."""
        return tuple(item for item in self.all_routes if app.version in item[1].versions())

    def fault(self, path: YamlPath, message: str, severity: Severity = Severity.ERROR) -> Fault:
        return self.document.fault(path, message, severity)


def parse(
    document: Document, model: type[M], record: Any, path: YamlPath
) -> tuple[M | None, list[Fault]]:
    """Validate the data at `path`: the model, or None, and every fault.

    Unknown keys do not hide what else is wrong: they are reported, and parsing goes on without.
    """
    try:
        return model.model_validate(record), []
    except ValidationError as error:
        problems = explain(error, model, record)
    faults = [document.fault((*path, *problem.path), problem.message) for problem in problems]
    if not all(problem.unknown_key for problem in problems):
        return None, faults
    known = _without(record, (problem.path for problem in problems))
    parsed, more = parse(document, model, known, path)
    return parsed, faults + more


def take_apart(
    document: Document, resolve: Callable[[str], Path]
) -> tuple[Checked | None, list[Fault]]:
    """Parse the Serve keys, each app's args and tunables, and the table."""
    serve, faults = parse(document, ServeFile, document.root, ())
    if serve is None:
        return None, faults
    apps: list[App] = []
    table: Table | None = None
    table_path: YamlPath = ()
    for index, options in enumerate(serve.applications):
        app, more = _app(document, ("applications", index), options)
        apps.append(app)
        faults += more
        for path, deployment in app.deployments():
            config_path: YamlPath = (*path, "user_config")
            if app.is_ingress and deployment.user_config is not None:
                table, more = parse(document, Table, deployment.user_config, config_path)
                table_path = config_path
                faults += more
    return Checked(document, serve, tuple(apps), table, table_path, resolve), faults


def _app(document: Document, path: YamlPath, options: Application) -> tuple[App, list[Fault]]:
    shell = SHELLS.get(options.import_path)
    if shell is None:
        return App(path, options, None, None), []
    args, faults = parse(document, shell.args, options.args, (*path, "args"))
    app = App(path, options, shell, args)
    for deployment_path, deployment in app.deployments():
        if shell.tunables is not None:
            config = deployment.user_config or {}
            config_path: YamlPath = (*deployment_path, "user_config")
            faults += parse(document, shell.tunables, config, config_path)[1]
    return app, faults


def _without(record: Any, paths: Iterable[YamlPath]) -> Any:
    kept = copy.deepcopy(record)
    for path in paths:
        owner = kept
        for part in path[:-1]:
            owner = owner[part]
        del owner[path[-1]]
    return kept
