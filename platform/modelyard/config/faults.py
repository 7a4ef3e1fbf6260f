"""A fault: one thing that is wrong with a file, where it is, and what to do about it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from modelyard.contract.errors import ConfigError

YamlPath = tuple[str | int, ...]
Scalar = str | int | float | bool

_SHOWN_CHARACTERS: Final = 80


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Fault:
    """line, column: from 1. path: dotted, "" for the whole file. value: None unless a scalar."""

    file: str
    line: int | None
    path: str
    value: Scalar | None
    message: str
    severity: Severity = Severity.ERROR
    column: int | None = None

    def __str__(self) -> str:
        """`file:line: path: value: what is wrong and what to do`, leaving out what there is not."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        parts = [place, self.path, _shown(self.value), self.message]
        if self.severity is Severity.WARNING:
            parts.insert(1, "warning")
        return ": ".join(part for part in parts if part)

    def as_record(self) -> dict[str, Any]:
        return asdict(self)


class DocumentError(ConfigError):
    """A file that could not be read at all; `fault` says where and why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def dotted(path: YamlPath) -> str:
    """A key that would break the line is quoted."""
    texts = (str(part) for part in path)
    return ".".join(text if text.isprintable() else repr(text) for text in texts)


def value_at(record: Any, path: YamlPath) -> Any:
    """The data at a path, None when there is none."""
    for part in path:
        try:
            record = record[part]
        except (KeyError, IndexError, TypeError):
            return None
    return record


def scalar_at(path: YamlPath, value: Any) -> Scalar | None:
    """The value as a fault may show it: no containers, and nothing that could be a secret.

    Somebody who pastes a key where its hash belongs, or a token into env_vars, must not find it in
    the log of a CI job.
    """
    if "env_vars" in path or (path and path[-1] in ("sha256", "ssl_keyfile_password")):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no number for it
    return value if isinstance(value, str | int | float | bool) else None


def _shown(value: Scalar | None) -> str:
    text = "" if value is None else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
