"""Bounds on what constrains an answer: schemas, regular expressions, grammars and tools.

An engine turns them into an automaton when the request arrives, on the loop that serves every other
request, so their cost is bounded here. Measured with vLLM 0.32's xgrammar: 57 KB of properties with
a `minProperties` took 32 s; the worst that these bounds let through takes 0.1 s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from modelyard.contract.errors import InvalidRequest

MAX_BYTES: Final = 65_536  # of the fields together, as JSON; tools carry descriptions
MAX_ENTRIES: Final = 2048  # members of objects and items of lists, the names of properties included
MAX_DEPTH: Final = 32
MAX_TOOLS: Final = 64
MAX_PATTERN_CHARACTERS: Final = 512  # of one regular expression
MAX_TEXT_CHARACTERS: Final = 2048  # of all regular expressions and grammars together
MAX_REPETITIONS: Final = 256  # in a regular expression or grammar: a{256}
MAX_COUNT: Final = 16_384  # minLength and its kin
MAX_BOUNDS: Final = 64  # how many of those, and of minimum and its kin
# The automaton of an object that counts its properties grows with the square of their number.
MAX_COUNTED_PROPERTIES: Final = 32

_COUNTS: Final = frozenset(
    "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains "
    "min max".split()  # the last two are a structural tag's
)
_RANGES: Final = frozenset("minimum maximum exclusiveMinimum exclusiveMaximum".split())
_PATTERNS: Final = frozenset(("pattern", "regex", "whitespace_pattern"))
_TEXTS: Final = _PATTERNS | {"grammar"}
_EMBEDDED: Final = ("json", "structural_tag")  # may hold JSON as text
# {2,9} of regular expressions and grammars, ~ 2..9 of lark's. No part can match in two ways: a
# pattern that backtracks would itself be the way to hold up the ingress.
_REPETITION: Final = re.compile(r"\{[\s0-9,]+\}|~[\s0-9.]+")
_NUMBER: Final = re.compile("[0-9]+")


@dataclass(slots=True)
class _Totals:
    entries: int = 0
    bounds: int = 0
    characters: int = 0


def check_grammars(body: Mapping[str, Any]) -> None:
    """Refuse what costs too much. Raises InvalidRequest naming the field."""
    size, totals = 0, _Totals()
    for name in ("response_format", "structured_outputs", "tools"):
        if (value := body.get(name)) is None:
            continue
        _check_shape(name, value)
        # Before the walk, so that its own cost is bounded too.
        size += len(json.dumps(value))
        _at_most(size, MAX_BYTES, "bytes of schemas and tools", name)
        _check_tree(name, value, totals)
        if name == "structured_outputs":
            for key in _EMBEDDED:
                if isinstance(text := value.get(key), str):
                    _check_tree(name, _parsed(text, f"{name}.{key}"), totals)


def _check_shape(name: str, value: Any) -> None:
    if name != "tools":
        if not isinstance(value, dict):
            raise InvalidRequest(f"{name} must be an object", param=name)
        return
    if not isinstance(value, list) or not all(isinstance(tool, dict) for tool in value):
        raise InvalidRequest("tools must be a list of objects", param="tools")
    _at_most(len(value), MAX_TOOLS, "tools", "tools")


def _parsed(text: str, param: str) -> Any:
    try:
        return from_json(text)
    except ValueError as error:
        raise InvalidRequest(f"{param} is not valid JSON", param=param) from error


def _check_tree(name: str, root: Any, totals: _Totals) -> None:
    for node in _nodes(name, root):
        totals.entries += len(node)
        _at_most(totals.entries, MAX_ENTRIES, "names and items in schemas and tools", name)
        if isinstance(node, dict):
            _check_object(name, node, totals)


def _nodes(name: str, root: Any) -> Iterator[dict[str, Any] | list[Any]]:
    """Every object and list, level by level. By levels and not by calls: the stack is no bound."""
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [node for node in level if isinstance(node, dict | list)]
        if not level:
            return
        yield from level
        level = [
            child for node in level for child in (node.values() if isinstance(node, dict) else node)
        ]
    if any(isinstance(node, dict | list) for node in level):
        raise InvalidRequest(f"{name} nests deeper than {MAX_DEPTH} levels: flatten it", param=name)


def _check_object(name: str, node: dict[str, Any], totals: _Totals) -> None:
    for key, value in node.items():
        if key in _TEXTS and isinstance(value, str):
            _check_text(name, key, value, totals)
        elif key in _COUNTS | _RANGES and isinstance(value, int | float):
            totals.bounds += 1
            _at_most(totals.bounds, MAX_BOUNDS, "lower and upper bounds in schemas", name)
            if key in _COUNTS and value > MAX_COUNT:
                raise InvalidRequest(f"{name}: {key} is at most {MAX_COUNT}: lower it", param=name)
    if isinstance(patterns := node.get("patternProperties"), dict):
        for pattern in patterns:
            _check_text(name, "pattern", pattern, totals)
    properties = node.get("properties")
    counted = _is_number(node.get("minProperties")) or _is_number(node.get("maxProperties"))
    if counted and isinstance(properties, dict):
        what = "properties beside minProperties or maxProperties"
        _at_most(len(properties), MAX_COUNTED_PROPERTIES, what, name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _check_text(name: str, key: str, text: str, totals: _Totals) -> None:
    if key in _PATTERNS:
        _at_most(len(text), MAX_PATTERN_CHARACTERS, f"characters of {key}", name)
    totals.characters += len(text)
    _at_most(totals.characters, MAX_TEXT_CHARACTERS, "characters of patterns and grammars", name)
    for repetition in _REPETITION.findall(text):
        for number in _NUMBER.findall(repetition):
            # By length first: int() refuses more digits than 4300.
            if len(number) > 9 or int(number) > MAX_REPETITIONS:
                what = f"{key} repeats more than {MAX_REPETITIONS} times: repeat less"
                raise InvalidRequest(f"{name}: {what}", param=name)


def _at_most(count: int, most: int, what: str, name: str) -> None:
    if count > most:
        raise InvalidRequest(f"{name}: {count} {what}, at most {most}: simplify it", param=name)
