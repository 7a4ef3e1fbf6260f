"""A fleet spec's files as one document: each path still knows its file and line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from modelyard.config.document import Document, load_document
from modelyard.config.explain import did_you_mean
from modelyard.config.faults import DocumentError, Fault, Severity, YamlPath
from modelyard.config.fleet import FLEET_SCHEMA, FleetSpec

MAPPINGS: Final = ("models", "routes", "tiers", "tenants", "quotas")
LISTS: Final = ("keys", "issuers")
MOST_TEAMS: Final = 1000


@dataclass(frozen=True, slots=True)
class FleetDocument(Document):
    """root: of all files together. teams: merged path to the team's file and the path there."""

    teams: Mapping[YamlPath, tuple[Document, YamlPath]]

    def line(self, path: YamlPath) -> int:
        document, own = self._home(path)
        return Document.line(document, own)

    def fault(self, path: YamlPath, message: str, severity: Severity = Severity.ERROR) -> Fault:
        document, own = self._home(path)
        fault = Document.fault(document, own, message, severity)
        return fault

    def _home(self, path: YamlPath) -> tuple[Document, YamlPath]:
        document, own = self.teams.get(path[:2], (self, path[:2]))
        return document, (*own, *path[2:])

    @property
    def sources(self) -> tuple[str, ...]:
        """Every file, the one that includes the others first."""
        return (self.file, *included(self))

    def digest(self) -> str:
        """Of one file its sha256; of several that of the lines `<sha256>  <name>`, as
        `sha256sum X.fleet.yaml teams/a.fleet.yaml | sha256sum` prints it beside the spec.

        Raises DocumentError for a file that has gone meanwhile."""
        names = (Path(self.file).name, *(self.root.get("include") or ()))
        hashes = [_sha256(source) for source in self.sources]
        if len(hashes) == 1:
            return hashes[0]
        lines = "".join(f"{one}  {name}\n" for one, name in zip(hashes, names, strict=True))
        return hashlib.sha256(lines.encode()).hexdigest()


def included(document: Document) -> tuple[str, ...]:
    """The team files' paths as this process finds them."""
    folder = Path(document.file).parent
    return tuple(str(folder / name) for name in document.root.get("include") or ())


def with_teams(document: Document) -> tuple[FleetDocument, list[Fault]]:
    """The spec with its team files merged in, and what is wrong with the merging.

    A name in two files is a fault that names both: the first stays. Raises DocumentError for a team
    file that is no YAML.
    """
    merger = _Merger(document)
    for index, name in enumerate(_names(document)):
        merger.include(("include", index), name)
    return FleetDocument(document.file, merger.root, document.lines, merger.teams), merger.faults


def _names(document: Document) -> Iterator[str]:
    """Of a list of texts; what else it may be is told by the spec's own fields."""
    names = document.root.get("include")
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        yield from names[:MOST_TEAMS]


class _Merger:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.root: dict[str, Any] = dict(document.root)
        self.teams: dict[YamlPath, tuple[Document, YamlPath]] = {}
        self.faults: list[Fault] = []
        self._seen: set[Path] = {Path(document.file).resolve()}

    def include(self, at: YamlPath, name: str) -> None:
        path = Path(self.document.file).parent / name
        if PurePosixPath(name).is_absolute() or name.startswith("~"):
            self._fault(at, "must be relative to this file, so that a checkout works anywhere")
        elif path.resolve() in self._seen:
            self._fault(at, "included twice, or includes itself: list each team file once")
        elif not path.is_file():
            self._fault(at, f"there is no file {path}: correct the path, or remove it")
        else:
            self._seen.add(path.resolve())
            self._merge(load_document(path, kind="a team's part of a fleet spec", key="models"))

    def _merge(self, team: Document) -> None:
        schema = team.root.get("schema")
        if schema != FLEET_SCHEMA:
            message = f"a team file begins as the fleet spec does: write {FLEET_SCHEMA}"
            self.faults.append(team.fault(("schema",), message))
        for key, value in team.root.items():
            if key in MAPPINGS:
                self._merge_mapping(team, key, value)
            elif key in LISTS:
                self._merge_list(team, key, value)
            elif key != "schema":
                self.faults.append(team.fault((key,), _not_a_teams(key)))

    def _merge_mapping(self, team: Document, key: str, value: Any) -> None:
        own = self.root.get(key, {})
        if not isinstance(value, dict):
            self.faults.append(team.fault((key,), "must be a mapping of names: write NAME: {...}"))
            return
        if not isinstance(own, dict):
            return  # told where the spec itself is read
        self.root[key] = dict(own)
        for name, entry in value.items():
            path = (key, name)
            if name in own:
                first, there = self.teams.get(path, (self.document, path))
                where = f"{first.file}:{first.line(there)}"
                message = f"is in {where} as well: give it another name, or remove one of the two"
                self.faults.append(team.fault(path, message))
                continue
            self.root[key][name] = entry
            self.teams[path] = (team, path)

    def _merge_list(self, team: Document, key: str, value: Any) -> None:
        own = self.root.get(key, [])
        if not isinstance(value, list):
            self.faults.append(team.fault((key,), "must be a list: write each as `- {...}`"))
            return
        if not isinstance(own, list):
            return
        self.root[key] = [*own, *value]
        for index in range(len(value)):
            self.teams[(key, len(own) + index)] = (team, (key, index))

    def _fault(self, path: YamlPath, message: str) -> None:
        self.faults.append(self.document.fault(path, message))


def _not_a_teams(key: str) -> str:
    known = ", ".join((*MAPPINGS, *LISTS))
    if key in FleetSpec.model_fields:
        return (
            f"not a team's to say, which are {known}: move it to the spec that includes this file"
        )
    near = did_you_mean(key, (*MAPPINGS, *LISTS))
    return f"unknown key: {near or f'remove it, or write one of {known}'}"


def _sha256(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        message = f"cannot be read ({error.strerror}): check the path"
        raise DocumentError(Fault(file, None, "", None, message)) from error
