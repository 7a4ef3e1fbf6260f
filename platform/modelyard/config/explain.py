"""pydantic's errors as problems a person can act on: where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from modelyard.config.faults import YamlPath

_LISTED_KEYS: Final = 10  # more of them would bury the message


@dataclass(frozen=True, slots=True)
class Problem:
    path: YamlPath
    message: str
    unknown_key: bool = False


def explain(error: ValidationError, model: type[BaseModel], record: Any) -> list[Problem]:
    """One problem per path of `record`, which is what `model` failed to validate."""
    found: dict[YamlPath, Problem] = {}
    for fault in error.errors(include_url=False, include_input=False, include_context=False):
        unknown = fault["type"] == "extra_forbidden"
        path = _path_in(record, fault["loc"], keep_last=unknown or fault["type"] == "missing")
        message = _unknown(model, path) if unknown else _message(fault["type"], fault["msg"])
        if path in found:  # each member of a union reports: it may be one thing or another
            message = f"{found[path].message}, or: {message}"
        found[path] = Problem(path, message, unknown)
    return list(found.values())


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean X?`, or "" when nothing is near."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]}?" if near else ""


def model_at(model: type[BaseModel], path: YamlPath) -> type[BaseModel] | None:
    """The model that describes the mapping at `path`, None where it is free-form."""
    here: Any = model
    for part in path:
        here = _step(here, part)
    return here if isinstance(here, type) and issubclass(here, BaseModel) else None


def _step(annotation: Any, part: str | int) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            if part == (field.alias or name):
                return _without_none(field.annotation)
        return None
    arguments = get_args(annotation)
    if not arguments:
        return None
    return _without_none(arguments[1] if get_origin(annotation) is dict else arguments[0])


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        return next(item for item in get_args(annotation) if item is not NoneType)
    return annotation


def _path_in(record: Any, loc: Iterable[str | int], keep_last: bool) -> YamlPath:
    """`loc` without pydantic's own marks (union members, "[key]"), which no file contains."""
    parts = tuple(loc)
    path: YamlPath = ()
    for part in parts:
        match record, part:
            case dict(), _ if part in record:
                record = record[part]
            case list(), int() if part < len(record):
                record = record[part]
            case _:
                break
        path = (*path, part)
    return (*path, parts[-1]) if keep_last and len(path) < len(parts) else path


def _unknown(model: type[BaseModel], path: YamlPath) -> str:
    owner = model_at(model, path[:-1])
    key = str(path[-1])
    if owner is None:
        return "unknown key: remove it, or check its spelling"
    refused: dict[str, str] = getattr(owner, "REFUSED", {})
    if key in refused:
        return refused[key]
    known = [field.alias or name for name, field in owner.model_fields.items()]
    if near := did_you_mean(key, known):
        return f"unknown key: {near}"
    if not known:
        return "unknown key: nothing can be set here, remove it"
    if len(known) <= _LISTED_KEYS:
        return f"unknown key: remove it, or use one of {', '.join(known)}"
    return "unknown key: remove it, or check its spelling"


def _message(kind: str, message: str) -> str:
    if kind == "missing":
        return "required and missing: add it"
    if kind == "string_type":
        return "must be text: put it in quotes"
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        return "must be a mapping of its fields: leave the key out for the defaults"
    return message.removeprefix("Value error, ")
