"""A YAML file as plain data that remembers the line of every path.

The data is built here from PyYAML's nodes, not by its constructor, because the constructor forgets
lines and lets the last of two equal keys win in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import yaml

from modelyard.config.faults import (
    DocumentError,
    Fault,
    Severity,
    YamlPath,
    dotted,
    scalar_at,
    value_at,
)
from modelyard.config.yaml_nodes import compose, reject

MAX_BYTES: Final = 4 * 1024 * 1024

_MERGE: Final = "tag:yaml.org,2002:merge"
_CONTAINER_TAGS: Final = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


@dataclass(frozen=True, slots=True)
class Document:
    """file: the name to show. root: the mapping at the top. lines: path to line, from 1."""

    file: str
    root: dict[str, Any]
    lines: Mapping[YamlPath, int]

    def line(self, path: YamlPath) -> int:
        """The line of a path, or of its nearest ancestor when a key is missing."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def value(self, path: YamlPath) -> Any:
        """The data at a path, None when there is none."""
        return value_at(self.root, path)

    def fault(self, path: YamlPath, message: str, severity: Severity = Severity.ERROR) -> Fault:
        value = scalar_at(path, self.value(path))
        return Fault(self.file, self.line(path), dotted(path), value, message, severity)


def load_document(
    path: Path, *, kind: str = "a Serve config", key: str = "applications"
) -> Document:
    """Read and parse a file. Raises DocumentError, one sentence.

    kind, key: what to ask for where the file holds nothing of use, and a key at its top.
    """
    file = str(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reject(file, None, f"cannot be read ({error.strerror}): check the path")
    if len(content) > MAX_BYTES:
        reject(file, None, f"is larger than {MAX_BYTES} bytes: give a config file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        reject(file, None, "is not UTF-8 text: give a YAML file")
    return parse_document(text, file, kind=kind, key=key)


def parse_document(
    text: str, file: str, *, kind: str = "a Serve config", key: str = "applications"
) -> Document:
    """Parse YAML text; `file` is the name shown in faults. Raises DocumentError, one sentence."""
    node = compose(text, file)
    if node is None:
        reject(file, None, f"is empty: give {kind} with `{key}`")
    if not isinstance(node, yaml.MappingNode):
        message = f"must hold keys and values at the top (`{key}: ...`), not a list or a value"
        reject(file, node.start_mark, message)
    builder = _Builder(file)
    root = builder.build(node, (), node.start_mark.line + 1)
    return Document(file, root, builder.lines)


class _Builder:
    """Turns nodes into plain data, noting the line of each path on the way."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[YamlPath, int] = {}
        self._scalars = yaml.constructor.SafeConstructor()

    def build(self, node: yaml.Node, path: YamlPath, line: int) -> Any:
        self.lines[path] = line
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in _CONTAINER_TAGS:
            self._fail(node, path, f"the tag {node.tag} is not allowed: use plain YAML")
        if isinstance(node, yaml.MappingNode):
            entries = self._entries(node, path)
            return {
                name: self.build(value, (*path, name), at) for name, (at, value) in entries.items()
            }
        return [
            self.build(item, (*path, index), item.start_mark.line + 1)
            for index, item in enumerate(node.value)
        ]

    def _entries(self, node: yaml.MappingNode, path: YamlPath) -> dict[str, tuple[int, yaml.Node]]:
        """Key to (line, value). Own keys beat merged ones, an earlier merge beats a later one."""
        own: dict[str, tuple[int, yaml.Node]] = {}
        merged: dict[str, tuple[int, yaml.Node]] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if not isinstance(source, yaml.MappingNode):
                        self._fail(key, path, "`<<` merges mappings only: give it an alias of one")
                    merged = self._entries(source, path) | merged
                continue
            name = self._scalar(key, path) if isinstance(key, yaml.ScalarNode) else None
            if not isinstance(name, str):
                self._fail(key, path, "a key must be text: put it in quotes")
            if name in own:
                self._fail(
                    key, (*path, name), f"set twice, first on line {own[name][0]}: remove one"
                )
            own[name] = (key.start_mark.line + 1, value)
        return merged | own

    def _scalar(self, node: yaml.ScalarNode, path: YamlPath) -> Any:
        try:
            value = self._scalars.construct_object(node)
        except yaml.MarkedYAMLError as error:
            self._fail(node, path, f"{error.problem}: use plain YAML")
        except ValueError as error:
            self._fail(node, path, f"{error}: put it in quotes if it is text")
        if value is not None and not isinstance(value, str | int | float | bool):
            self._fail(node, path, f"YAML reads this as a {type(value).__name__}: put it in quotes")
        return value

    def _fail(self, node: yaml.Node, path: YamlPath, message: str) -> NoReturn:
        raise DocumentError(Fault(self.file, node.start_mark.line + 1, dotted(path), None, message))
