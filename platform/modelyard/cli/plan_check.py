"""A fleet spec checked through to the Serve config it makes, with faults at the spec's lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from modelyard.artifacts.store import resolve
from modelyard.config.check import Report, check_document
from modelyard.config.check_fleet import FleetReport, check_fleet, in_order
from modelyard.config.checked import take_apart
from modelyard.config.document import Document, load_document, parse_document
from modelyard.config.faults import Fault, Severity, YamlPath, value_at
from modelyard.config.fleet import FleetSpec
from modelyard.config.fleet_document import FleetDocument
from modelyard.config.fleet_file import FleetFaults
from modelyard.config.fleet_memory import Artifacts
from modelyard.config.settings import Settings
from placement.express import to_yaml
from placement.infeasible import Infeasible
from placement.plan import Plan
from placement.planned import make_plan

_OF_SCALING: Final = frozenset(
    ("min_replicas", "max_replicas", "target_ongoing_requests", "look_back_period_s")
) | frozenset(("upscale_delay_s", "downscale_delay_s", "downscale_to_zero_delay_s"))

_OF_SERVE: Final = frozenset(
    (
        "max_ongoing_requests",
        "graceful_shutdown_timeout_s",
        "health_check_period_s",
        "health_check_timeout_s",
        "max_surge_percent",
        "user_config",
        "logging_config",
    )
)


@dataclass(frozen=True, slots=True)
class Fleet:
    """A spec without a fault of its own. memory: bytes of one replica by `name@version`."""

    document: FleetDocument
    spec: FleetSpec
    memory: dict[str, int]
    warnings: tuple[Fault, ...]

    @property
    def name(self) -> str:
        return Path(self.document.file).name

    def rendered(self, plan: Plan) -> bytes:
        """The Serve config."""
        return to_yaml(self.spec, plan, self.name, self.document.digest())


def load_fleet(path: Path, settings: Settings) -> Fleet:
    """Raises FleetFaults, and DocumentError for a file that is no YAML."""
    document = load_document(path, kind="a fleet spec", key="schema: modelyard/fleet/v1")
    return _fleet(check_fleet(document, Artifacts.of(settings)))


def _fleet(found: FleetReport) -> Fleet:
    if found.checked is None or not found.ok:
        raise FleetFaults(found.faults)
    checked = found.checked
    return Fleet(found.document, checked.spec, dict(checked.memory), found.faults)


def check_fleet_file(document: Document, settings: Settings) -> Report:
    """As `check_document` does, and what it makes is planned, rendered and checked too."""
    found = check_fleet(document, Artifacts.of(settings))
    if found.checked is None or not found.ok:
        return Report(found.faults)
    fleet = _fleet(found)
    try:
        plan = make_plan(fleet.spec, fleet.memory)
    except Infeasible as error:
        fault = fleet.document.fault(_path_of(error, fleet.spec), str(error))
        return Report((*found.faults, fault))
    rendered = check_rendered(fleet, fleet.rendered(plan), settings)
    faults = in_order(fleet.document, [*found.faults, *rendered.faults])
    return replace(rendered, faults=faults)


def check_rendered(fleet: Fleet, rendered: bytes, settings: Settings) -> Report:
    """The Serve config's own faults, told at the lines of the spec that they come from."""
    document = parse_document(rendered.decode(), "serve.yaml")
    report = check_document(document, lambda uri: resolve(uri, settings.home))
    origins = _Origins(document, fleet, settings)
    told = {(one.file, one.line, one.path, one.message): one for one in origins.of(report.faults)}
    return replace(report, faults=tuple(told.values()))


def require_deployable(report: Report) -> None:
    """Raises FleetFaults."""
    errors = [fault for fault in report.faults if fault.severity is Severity.ERROR]
    if errors:
        raise FleetFaults(errors)


def _path_of(error: Infeasible, spec: FleetSpec) -> YamlPath:
    """The first model without a place; of a swap area there is no line."""
    names = (version.partition("@")[0] for version, _ in error.unplaced)
    return next((("models", name) for name in names if name in spec.models), ("models",))


class _Origins:
    """From paths of the rendered config to paths of the spec."""

    def __init__(self, document: Document, fleet: Fleet, settings: Settings) -> None:
        self.fleet, self.root = fleet, document.root
        checked, _ = take_apart(document, lambda uri: resolve(uri, settings.home))
        self.apps = checked.apps if checked is not None else ()

    def of(self, faults: tuple[Fault, ...]) -> Iterator[Fault]:
        for fault in faults:
            path = self._path(_path_in(self.root, fault.path))
            yield self.fleet.document.fault(path, fault.message, fault.severity)

    def _path(self, path: YamlPath) -> YamlPath:
        if path[:1] != ("applications",) or len(path) < 2 or not isinstance(path[1], int):
            return path
        if path[1] >= len(self.apps):
            return ()
        app, rest = self.apps[path[1]], path[2:]
        deployed = rest[2:] if rest[:1] == ("deployments",) else None
        if app.is_ingress or app.is_control:
            own = "ingress" if app.is_ingress else "control"
            if deployed is not None and deployed[:1] == ("user_config",):
                return deployed[1:]
            return (own, *(deployed if deployed is not None else rest[1:]))
        name, _, number = app.version.partition("@")
        return self._of_model(("models", name), number, rest, deployed)

    def _of_model(
        self, model: YamlPath, number: str, rest: YamlPath, deployed: YamlPath | None
    ) -> YamlPath:
        version: YamlPath = (*model, "versions", number)
        match deployed if deployed is not None else rest:
            case ("args", ("artifact" | "digest") as key, *_):
                return (*version, key)
            case ("args", *keys):
                return (*model, *keys)
            case ("import_path", *_):
                return (*model, "kind")
            case ("runtime_env", *keys):
                return (*model, "serve", "runtime_env", *keys)
            case ("autoscaling_config", key, *_) if key in _OF_SCALING:
                own = self.fleet.document.value((*version, "scaling")) is not None
                return (*(version if own else model), "scaling", key)
            case (str() as key, *keys) if deployed is not None and key in _OF_SERVE:
                return (*model, "serve", key, *keys)
        return version


def _path_in(record: Any, dotted: str) -> YamlPath:
    """The path that `dotted` names there: a key may hold dots itself, as versions do."""
    words = dotted.split(".") if dotted else []
    path: YamlPath = ()
    while words:
        taken, part = 1, _part(words[0])
        if isinstance(record, dict):
            joined = [".".join(words[:n]) for n in range(len(words), 0, -1)]
            key = next((one for one in joined if one in record), words[0])
            taken, part = key.count(".") + 1, key
        path = (*path, part)
        record = value_at(record, (part,))
        words = words[taken:]
    return path


def _part(word: str) -> str | int:
    return int(word) if word.isdecimal() else word
