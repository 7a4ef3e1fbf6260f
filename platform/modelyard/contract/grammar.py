"""Bounds on what constrains an answer: schemas, regular expressions, grammars and tools.

An engine turns them into an automaton when the request arrives and walks it with every token, so
their cost is bounded here. The figures are in docs/decisions.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from pydantic_core import from_json

from modelyard.contract.ebnf import cost_of_ebnf
from modelyard.contract.errors import InvalidRequest
from modelyard.contract.expressions import MAX_STATES, cost_of_regex
from modelyard.contract.schema_loops import has_loop, rival_branches

MAX_BYTES: Final = 65_536  # of the fields together, as JSON; tools carry descriptions
MAX_ENTRIES: Final = 2048  # members of objects and items of lists, the names of properties included
MAX_DEPTH: Final = 32
MAX_TOOLS: Final = 64
MAX_PATTERN_CHARACTERS: Final = 512  # of one regular expression
MAX_TEXT_CHARACTERS: Final = 2048  # of all regular expressions and grammars together
MAX_COUNT: Final = 16_384  # minLength and its kin
MAX_BOUNDS: Final = 64  # how many of those, and of minimum and its kin
# The automaton of an object that counts its properties grows with the square of their number.
MAX_COUNTED_PROPERTIES: Final = 32
MAX_PROPERTY_PAIRS: Final = 160_000  # the square of an object's properties, of all together
# Where other names may come too, each character that tells the names apart costs 10 ms.
MAX_OPEN_CHARACTERS: Final = 256
MAX_RIVAL_BRANCHES: Final = 48  # of unions; a step's cost is the square
MAX_TYPES: Final = 7  # of one schema: JSON has no more
# Each length of a string up to 128 is a state (10 ms), longer ones cost no more (2 s). The same
# bounds given to many strings cost once.
MAX_LENGTH_STATES: Final = 512
_LONG: Final = 128

_COUNTS: Final = frozenset(
    "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains "
    "min max".split()  # the last two are a structural tag's
)
_RANGES: Final = frozenset("minimum maximum exclusiveMinimum exclusiveMaximum".split())
_PATTERNS: Final = frozenset(("pattern", "regex", "whitespace_pattern"))
_TEXTS: Final = _PATTERNS | {"grammar"}
_FURTHER_NAMES: Final = ("additionalProperties", "unevaluatedProperties")
_ROOTS: Final = ("schema", "parameters", "json", "json_schema")
_EMBEDDED: Final = ("json", "structural_tag")  # may hold JSON as text


@dataclass(slots=True)
class _Totals:
    entries: int = 0
    bounds: int = 0
    characters: int = 0
    states: int = 0
    property_pairs: int = 0
    open_characters: int = 0
    rivals: int = 0
    lengths: set[tuple[Any, Any]] = field(default_factory=set)  # minLength, maxLength


def check_grammars(body: Mapping[str, Any]) -> None:
    """Refuse what costs too much. Raises InvalidRequest naming the field."""
    size, totals = 0, _Totals()
    for name in ("response_format", "structured_outputs", "tools", "text"):
        if (value := body.get(name)) is None:
            continue
        _check_shape(name, value)
        # Before the walk, so that its own cost is bounded too.
        size += len(json.dumps(value))
        _at_most(size, MAX_BYTES, "bytes of schemas and tools", name)
        _check_tree(name, value, totals)
        _check_references(name, value, totals)
        if name == "structured_outputs":
            for key in _EMBEDDED:
                if isinstance(text := value.get(key), str):
                    tree = _parsed(text, f"{name}.{key}")
                    _check_tree(name, tree, totals)
                    _check_references(name, {key: tree}, totals)


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


def _check_references(name: str, root: Any, totals: _Totals) -> None:
    if any(map(has_loop, _schemas(root))):
        raise InvalidRequest(
            f"{name}: a schema stands for itself, so no text can satisfy it: end its $ref",
            param=name,
        )
    totals.rivals += rival_branches(root)
    what = "branches of anyOf and oneOf that hold a $ref beside another one"
    _at_most(totals.rivals, MAX_RIVAL_BRANCHES, what, name)


def _schemas(root: Any) -> Iterator[Any]:
    """The outermost schemas, which `#` means in them. A property may have one of their names."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += node
        elif isinstance(node, dict):
            for key, value in node.items():
                if key in _ROOTS and not (isinstance(value, dict) and "schema" in value):
                    yield value
                else:
                    stack.append(value)


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
    _check_lengths(name, node, totals)
    if isinstance(types := node.get("type"), list):
        _at_most(len(types), MAX_TYPES, "types of one value", name)
        if len(set(map(str, types))) < len(types):
            raise InvalidRequest(
                f"{name}: a list of types names one twice: name it once", param=name
            )
    _check_properties(name, node, totals)


def _check_properties(name: str, node: dict[str, Any], totals: _Totals) -> None:
    properties = node.get("properties")
    if isinstance(properties, dict):
        # Left unsaid, the engine adds none: `additionalProperties` is false in its strict mode.
        is_open = any(node.get(key, False) is not False for key in _FURTHER_NAMES)
        totals.property_pairs += len(properties) ** 2
        what = "pairs of properties of one object"
        _at_most(totals.property_pairs, MAX_PROPERTY_PAIRS, what, name)
        totals.open_characters += _prefixes(properties) if is_open else 0
        what = "characters in the names of properties beside additionalProperties"
        _at_most(totals.open_characters, MAX_OPEN_CHARACTERS, what, name)
    counted = _is_number(node.get("minProperties")) or _is_number(node.get("maxProperties"))
    if counted and isinstance(properties, dict):
        what = "properties beside minProperties or maxProperties"
        _at_most(len(properties), MAX_COUNTED_PROPERTIES, what, name)


def _prefixes(names: Iterable[str]) -> int:
    """The nodes of the tree of the names' characters, as JSON writes them."""
    total, last = 0, ""
    for text in sorted(json.dumps(name)[1:-1] for name in names):
        shared = takewhile(lambda pair: pair[0] == pair[1], zip(last, text, strict=False))
        total += len(text) - sum(1 for _ in shared)
        last = text
    return total


def _check_lengths(name: str, node: dict[str, Any], totals: _Totals) -> None:
    least, most = node.get("minLength"), node.get("maxLength")
    if _is_number(least) or _is_number(most):
        totals.lengths.add((least if _is_number(least) else 0, most if _is_number(most) else 0))
        states = sum(min(max(pair), _LONG) for pair in totals.lengths)
        if states > MAX_LENGTH_STATES:
            what = "the minLength and maxLength of its strings differ too much: use fewer lengths"
            raise InvalidRequest(f"{name}: {what}", param=name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _check_text(name: str, key: str, text: str, totals: _Totals) -> None:
    if key in _PATTERNS:
        _at_most(len(text), MAX_PATTERN_CHARACTERS, f"characters of {key}", name)
    totals.characters += len(text)
    _at_most(totals.characters, MAX_TEXT_CHARACTERS, "characters of patterns and grammars", name)
    try:
        cost = cost_of_ebnf(text) if key == "grammar" else cost_of_regex(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{name}.{key}: {error.message}", param=name) from error
    totals.states += cost.states
    _at_most(totals.states, MAX_STATES, "states of patterns and grammars", name)


def _at_most(count: int, most: int, what: str, name: str) -> None:
    if count > most:
        raise InvalidRequest(f"{name}: {count} {what}, at most {most}: simplify it", param=name)
