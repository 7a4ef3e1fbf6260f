"""JSON schemas that stand for themselves: no text can satisfy them, and an engine fails on that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_SAME_VALUE: Final = ("allOf", "anyOf", "oneOf")


def has_loop(root: Any) -> bool:
    """Whether a schema of the document reaches itself by `$ref` and its kin alone.

    A recursion through properties or items is fine: it goes on with another value each time.
    """
    done: set[int] = set()
    for start in _schemas(root):
        # Depth first with a stack of our own: a chain of references has no bound but the document.
        path: set[int] = set()
        stack: list[tuple[Any, bool]] = [(start, False)]
        while stack:
            node, left = stack.pop()
            if left:
                path.discard(id(node))
                done.add(id(node))
            elif id(node) in path:
                return True
            elif id(node) not in done:
                path.add(id(node))
                stack.append((node, True))
                stack += [(other, False) for other in _same_value(node, root)]
    return False


def _schemas(root: Any) -> Iterator[dict[str, Any]]:
    """Every object of the document, whether it is a schema or only holds some."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def _same_value(node: dict[str, Any], root: Any) -> Iterator[dict[str, Any]]:
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target = _resolved(reference, root)
        if isinstance(target, dict):
            yield target
    for key in _SAME_VALUE:
        if isinstance(members := node.get(key), list):
            yield from (one for one in members if isinstance(one, dict))


def _resolved(reference: str, root: Any) -> Any:
    node = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(name)
        elif isinstance(node, list) and name.isascii() and name.isdigit() and len(name) < 9:
            node = node[int(name)] if int(name) < len(node) else None
        else:
            return None
    return node
