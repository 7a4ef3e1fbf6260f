"""Chat messages as an engine may see them: text only, and only OpenAI's keys.

A copy is passed on and never the caller's own object: an engine looks for images under keys that
its documentation does not name, and would fetch the URL it finds there.
"""

from __future__ import annotations

from typing import Any, Final

from modelyard.contract.errors import InvalidRequest

MAX_MESSAGES: Final = 4096
ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_TEXT_KEYS: Final = ("name", "tool_call_id", "refusal")
_KEYS: Final = frozenset(("role", "content", "tool_calls", *_TEXT_KEYS))
# A client that sends an answer back as it came sends these too; they are not for the model.
_DROPPED: Final = frozenset(("annotations", "reasoning", "reasoning_content"))


def filter_messages(messages: Any) -> list[dict[str, Any]]:
    """The messages without what no model reads. Raises InvalidRequest naming the place."""
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("messages must be a list of at least one message", param="messages")
    if len(messages) > MAX_MESSAGES:
        raise InvalidRequest(
            f"messages holds {len(messages)} messages, at most {MAX_MESSAGES}: send fewer",
            param="messages",
        )
    return [_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def _message(message: Any, where: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise InvalidRequest(f"{where} must be an object", param=where)
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidRequest(f"{where}.role must be one of {', '.join(ROLES)}", param=where)
    kept: dict[str, Any] = {"role": role, "content": _content(message.get("content"), where)}
    for key, value in message.items():
        if value is None or key in ("role", "content") or key in _DROPPED:
            continue
        if key not in _KEYS:
            raise InvalidRequest(f"{where}: unknown key {key[:64]!r}: remove it", param=where)
        if key == "tool_calls":
            kept[key] = _tool_calls(value, f"{where}.tool_calls")
        else:
            kept[key] = text_at(value, f"{where}.{key}")
    return kept


def _content(content: Any, where: str) -> Any:
    # An answer that only calls tools comes back with null: templates add the content to a text.
    if content is None or isinstance(content, str):
        return content or ""
    where = f"{where}.content"
    if not isinstance(content, list):
        raise InvalidRequest(f"{where} must be text or a list of text parts", param=where)
    return [_part(part, where) for part in content]


def _part(part: Any, where: str) -> dict[str, str]:
    if isinstance(part, dict):
        for kind in ("text", "refusal"):
            if part.get("type") == kind and part.keys() == {"type", kind}:
                return {"type": kind, kind: text_at(part[kind], where)}
    raise InvalidRequest(
        f'{where}: a part must be {{"type": "text", "text": ...}} and nothing else', param=where
    )


def _tool_calls(calls: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise InvalidRequest(f"{where} must be a list of objects", param=where)
    return [_tool_call(call, f"{where}[{index}]") for index, call in enumerate(calls)]


def _tool_call(call: dict[str, Any], where: str) -> dict[str, Any]:
    function = call.get("function")
    if call.get("type", "function") != "function" or not isinstance(function, dict):
        raise InvalidRequest(f"{where} must be of type function and hold one", param=where)
    return {
        "id": text_at(call.get("id"), f"{where}.id"),
        "type": "function",
        "function": {
            name: text_at(function.get(name), f"{where}.function.{name}")
            for name in ("name", "arguments")
        },
    }


def text_at(value: Any, where: str) -> str:
    """The text. Raises InvalidRequest naming the place."""
    if not isinstance(value, str):
        raise InvalidRequest(f"{where} must be text", param=where)
    return value
