"""OpenAI's /v1/responses, stateless: what passes to the engine of its own fields.

Nothing is kept between two requests, so whatever asks for memory is refused and not ignored: a
caller who believes that the last turn is remembered would get a wrong answer with status 200.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.messages import text_at
from modelyard.contract.response_items import filter_input, unsupported
from modelyard.contract.tools import parameters_of

_STORED: Final = ("previous_response_id", "conversation", "prompt")
# What asks for memory, or for a cut of the conversation: read here, and passed to no engine.
STATE: Final = ("store", "background", "truncation", *_STORED)
_LOGPROBS: Final = "message.output_text.logprobs"
# Clients of reasoning models ask for it with every request; no model here answers with any.
_INCLUDE: Final = frozenset((_LOGPROBS, "reasoning.encrypted_content"))
_TOOL_KEYS: Final = frozenset(("type", "name", "description", "parameters", "strict"))
_TOOL_CHOICES: Final = ("none", "auto", "required")
MAX_METADATA: Final = 16  # OpenAI's bounds
MAX_METADATA_CHARACTERS: Final = 512


def filter_responses(given: Mapping[str, Any], passed: dict[str, Any]) -> dict[str, Any]:
    """`passed` as an engine may see it. `given` is the whole body. Raises InvalidRequest."""
    _refuse_state(given)
    kept = passed | {"input": filter_input(passed.get("input"))}
    if "instructions" in kept:
        text_at(kept["instructions"], "instructions")
    if "include" in kept:
        kept["include"] = _included(kept["include"])
    if "tools" in kept:
        kept["tools"] = _tools(kept["tools"])
    if "tool_choice" in kept:
        _check_tool_choice(kept["tool_choice"])
    if "metadata" in kept:
        _check_metadata(kept["metadata"])
    if "text" in kept:
        # The rest of it, `verbosity`, is advice that no engine reads.
        form = kept.pop("text").get("format")
        if form is not None:
            kept["text"] = {"format": form}
    return kept


def _refuse_state(given: Mapping[str, Any]) -> None:
    for name in _STORED:
        if name in given:
            raise unsupported(
                name, f"{name} needs answers to be kept, and none is: send the whole input"
            )
    for name in ("store", "background"):
        if given.get(name, False) is not False:
            raise unsupported(
                name, f"{name} must be false, because answers are not kept: send false or nothing"
            )
    if given.get("truncation", "disabled") != "disabled":
        raise unsupported("truncation", "truncation must be disabled: shorten the input")


def _included(include: Any) -> list[str]:
    known = isinstance(include, list) and all(
        isinstance(one, str) and one in _INCLUDE for one in include
    )
    if not known:
        raise InvalidRequest(f"include must be a list that holds {_LOGPROBS}", param="include")
    return [one for one in include if one == _LOGPROBS]


def _tools(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = []
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        if tool.get("type") != "function":
            raise unsupported(
                "tools", f"{where} must be of type function: the platform runs no tools itself"
            )
        text_at(tool.get("name"), f"{where}.name")
        own = {key: tool[key] for key in tool.keys() & _TOOL_KEYS}
        # vLLM's model of a tool wants the two that OpenAI lets a caller leave out.
        kept.append({"strict": None} | own | {"parameters": parameters_of(tool)})
    return kept


def _check_tool_choice(choice: Any) -> None:
    if isinstance(choice, str) and choice in _TOOL_CHOICES:
        return
    named = isinstance(choice, dict) and choice.get("type") == "function"
    if not named or choice.keys() != {"type", "name"}:
        raise InvalidRequest(
            'tool_choice must be none, auto, required, or {"type": "function", "name": ...}',
            param="tool_choice",
        )
    text_at(choice["name"], "tool_choice.name")


def _check_metadata(metadata: Any) -> None:
    good = (
        isinstance(metadata, dict)
        and len(metadata) <= MAX_METADATA
        and all(
            isinstance(value, str) and len(name) + len(value) <= MAX_METADATA_CHARACTERS
            for name, value in metadata.items()
        )
    )
    if not good:
        raise InvalidRequest(
            f"metadata must be at most {MAX_METADATA} short texts by name", param="metadata"
        )
