"""Where the references of a JSON schema lead.

No text can satisfy a schema that stands for itself, and an engine fails on that. Where the branches
of a union lead on to more unions, it follows all of them with every token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_UNIONS: Final = ("anyOf", "oneOf")
_SAME_VALUE: Final = ("allOf", *_UNIONS)


def has_loop(root: Any) -> bool:
    """Whether a schema of the document reaches itself by `$ref` and its kin alone.

    A recursion through properties or items is fine: it goes on with another value each time.
    """
    done: set[int] = set()
    for start in _nodes(root):
        if not isinstance(start, dict):
            continue
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


def rival_branches(root: Any) -> int:
    """How many branches beyond the first of each union hold a `$ref`, over the document.

    Any `$ref` counts, not only one that comes back: unions that name each other in a row, without
    end or not, are as dear. One that may be null has one branch and so no rival.
    """
    rivals = 0
    # From the leaves up, as parents come before their children.
    referring: set[int] = set()
    for node in reversed(list(_nodes(root))):
        children = node.values() if isinstance(node, dict) else node
        if any(id(one) in referring for one in children) or (
            isinstance(node, dict) and "$ref" in node
        ):
            referring.add(id(node))
        if isinstance(node, dict):
            for key in _UNIONS:
                if isinstance(members := node.get(key), list):
                    rivals += max(sum(id(one) in referring for one in members) - 1, 0)
    return rivals


def _nodes(root: Any) -> Iterator[dict[str, Any] | list[Any]]:
    """Every object and list of the document, whether it is a schema or not, parents first."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict | list):
            yield node
            stack += node.values() if isinstance(node, dict) else node


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
