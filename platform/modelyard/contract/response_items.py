"""The `input` of /v1/responses: text, or items as an engine may see them.

Rebuilt and never the caller's own objects, as in messages.py: an engine looks for images and files
under keys that this module does not know.
"""

from __future__ import annotations

from typing import Any, Final

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.messages import MAX_MESSAGES, ROLES, text_at

_MESSAGE_KEYS: Final = frozenset(("type", "role", "content"))
_CALL_KEYS: Final = frozenset(("type", "call_id", "name", "arguments"))
_OUTPUT_KEYS: Final = frozenset(("type", "call_id", "output"))
# A client that sends an answer's items back as they came sends these too.
_DROPPED: Final = frozenset(("id", "status", "phase", "namespace", "caller", "created_by"))
_PART_KEYS: Final = frozenset(("type", "text", "annotations", "logprobs"))


def filter_input(value: Any) -> Any:
    """The text or the items without what no model reads. Raises InvalidRequest naming the place."""
    if isinstance(value, str) and value:
        return value
    if not isinstance(value, list) or not value:
        raise InvalidRequest("input must be text or a list of at least one item", param="input")
    if len(value) > MAX_MESSAGES:
        raise InvalidRequest(
            f"input holds {len(value)} items, at most {MAX_MESSAGES}: send fewer", param="input"
        )
    items = [_item(item, f"input[{index}]") for index, item in enumerate(value)]
    # Reasoning belongs to the model that made it: not for another to read.
    kept = [item for item in items if item["type"] != "reasoning"]
    if not kept:
        raise InvalidRequest("input must hold more than reasoning", param="input")
    return kept


def _item(item: Any, where: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise InvalidRequest(f"{where} must be an object", param=where)
    kind = "message" if item.get("type") is None else item["type"]
    if kind == "message":
        return _message(_without(item, _MESSAGE_KEYS, where), where)
    if kind == "function_call":
        call = _without(item, _CALL_KEYS, where)
        return {"type": kind} | {
            name: text_at(call.get(name), f"{where}.{name}")
            for name in ("call_id", "name", "arguments")
        }
    if kind == "function_call_output":
        output = _without(item, _OUTPUT_KEYS, where)
        return {
            "type": kind,
            "call_id": text_at(output.get("call_id"), f"{where}.call_id"),
            "output": _text_of(output.get("output"), f"{where}.output"),
        }
    if kind == "reasoning":
        return {"type": kind}
    raise unsupported(where, f"{where}.type must be message, function_call or function_call_output")


def _without(item: dict[str, Any], keys: frozenset[str], where: str) -> dict[str, Any]:
    """The item's own keys. Raises InvalidRequest for one that is neither its own nor dropped."""
    kept = {name: value for name, value in item.items() if value is not None}
    for name in kept:
        if name not in keys and name not in _DROPPED:
            raise InvalidRequest(f"{where}: unknown key {name[:64]!r}: remove it", param=where)
    return kept


def _message(item: dict[str, Any], where: str) -> dict[str, Any]:
    """One text per message: the engine would take the first part of an answer and drop the rest."""
    role = item.get("role")
    if not isinstance(role, str) or role not in ROLES or role == "tool":
        raise InvalidRequest(
            f"{where}.role must be one of system, developer, user, assistant", param=where
        )
    return {
        "type": "message",
        "role": role,
        "content": _text_of(item.get("content"), f"{where}.content"),
    }


def _text_of(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidRequest(f"{where} must be text or a list of text parts", param=where)
    return "\n".join(_part(part, where) for part in content)


def _part(part: Any, where: str) -> str:
    if isinstance(part, dict):
        if part.get("type") in ("input_text", "output_text") and part.keys() <= _PART_KEYS:
            return text_at(part.get("text"), where)
        if part.get("type") == "refusal" and part.keys() == {"type", "refusal"}:
            return text_at(part["refusal"], where)
    raise InvalidRequest(
        f'{where}: a part must be {{"type": "input_text", "text": ...}} and nothing else',
        param=where,
    )


def unsupported(param: str, message: str) -> InvalidRequest:
    """What OpenAI's API knows and this one does not offer."""
    return InvalidRequest(message, param=param, reason="unsupported", wire_code="unsupported")
