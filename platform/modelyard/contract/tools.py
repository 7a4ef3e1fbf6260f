"""The parameters of a function that takes none, as an engine has to see them."""

from __future__ import annotations

from typing import Any


def parameters_of(function: dict[str, Any]) -> Any:
    """The schema of a function's arguments. OpenAI reads a missing or empty one as no arguments.

    An engine would let the model write any JSON there: a text or a number is no set of arguments.
    """
    return function.get("parameters") or {"type": "object", "properties": {}}


def filter_chat_tools(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Chat's tools with parameters in each function; what is no function stays as it is."""
    return [
        tool | {"function": called | {"parameters": parameters_of(called)}}
        if isinstance(called := tool.get("function"), dict)
        else tool
        for tool in tools
    ]
