"""YAML text to PyYAML's nodes, with bounds: a small file must not ask for much time or memory."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import yaml

from modelyard.config.faults import DocumentError, Fault

MAX_NODES: Final = 200_000  # after aliases are expanded: a file of 1 KB can otherwise ask for 1e9
MAX_DEPTH: Final = 64

# The C parser reads a large file about ten times faster; wheels have it, source builds may not.
_Loader: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


def compose(text: str, file: str) -> yaml.Node | None:
    """The root node, None for an empty file. Raises DocumentError for bad YAML and for too much."""
    try:
        _bound_depth(text, file)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        problem = " ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        reject(file, mark, f"is not valid YAML ({problem}): fix this line or the one before")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = "holds a control character that YAML does not allow: give a YAML text file"
        raise DocumentError(Fault(file, line, "", None, message)) from error
    if node is not None:
        _measure(node, file, {})
    return node


def reject(file: str, mark: Any, message: str) -> NoReturn:
    """Raise DocumentError about a whole file. mark: PyYAML's, from either parser, or None."""
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    raise DocumentError(Fault(file, line, "", None, message, column=column))


def _bound_depth(text: str, file: str) -> None:
    """The event parser is flat, composing recurses: so the depth is looked at first."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            reject(file, event.start_mark, f"is nested deeper than {MAX_DEPTH} levels: flatten it")


def _measure(node: yaml.Node, file: str, seen: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Nodes and height once aliases are expanded, without expanding them."""
    if id(node) in seen:
        count, height = seen[id(node)]
        if not count:
            reject(file, node.start_mark, "holds an alias that contains itself: remove it")
        return count, height
    seen[id(node)] = (0, 0)
    count, height = 1, 0
    for child in _children(node):
        child_count, child_height = _measure(child, file, seen)
        count, height = count + child_count, max(height, child_height + 1)
    if count > MAX_NODES or height > MAX_DEPTH:
        message = (
            f"expands to more than {MAX_NODES} values or {MAX_DEPTH} levels: use fewer aliases"
        )
        reject(file, node.start_mark, message)
    seen[id(node)] = (count, height)
    return count, height


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
