"""Which conversation a request belongs to: what keeps one conversation on one arm."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.headers import CONVERSATION_ID
from modelyard.contract.operations import OPERATIONS_OF, Kind, Operation

TURNS: Final = frozenset(OPERATIONS_OF[Kind.GENERATOR])
MAX_CHARACTERS: Final = 256


def conversation_key(
    operation: Operation, body: Mapping[str, Any], headers: Mapping[str, str], tenant: str
) -> str:
    """A hash that all requests of one conversation share, and no other tenant's; "" for none.

    What names it, in this order: `conversation_id` (native), X-Conversation-Id, `prompt_cache_key`,
    else the tenant, `user` and the first messages, which every later turn repeats. A completion
    (its prompt is one growing text) and a small model's request belong to none unless they name
    one. Raises InvalidRequest.
    """
    given = {
        "conversation_id": body.get("conversation_id") if operation is Operation.GENERATE else None,
        CONVERSATION_ID: headers.get(CONVERSATION_ID),
        "prompt_cache_key": body.get("prompt_cache_key") if operation in TURNS else None,
    }
    for name, value in given.items():
        if value is not None:
            return _hash(tenant, "named", _checked(value, name))
    if operation not in TURNS or operation is Operation.COMPLETIONS:
        return ""
    return _hash(tenant, "first", json.dumps([body.get("user"), _first(operation, body)]))


def named_conversation(tenant: str, name: str) -> str:
    """The key of a conversation that a caller names. Raises InvalidRequest."""
    return _hash(tenant, "named", _checked(name, "conversation"))


def _checked(value: Any, name: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_CHARACTERS:
        raise InvalidRequest(
            f"{name} must be a text of 1 to {MAX_CHARACTERS} characters", param=name
        )
    return value


def _first(operation: Operation, body: Mapping[str, Any]) -> Any:
    """What the second turn repeats of the first: all up to the first message of the user."""
    messages = body.get("input" if operation is Operation.RESPONSES else "messages")
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]  # as the next turn will write it
    if not isinstance(messages, list):
        return None
    roles = [one.get("role") if isinstance(one, dict) else None for one in messages]
    turn = roles.index("user") + 1 if "user" in roles else len(messages)
    return [
        body.get("instructions"),
        [_plain(one) if isinstance(one, dict) else one for one in messages[:turn]],
    ]


def _plain(message: Mapping[str, Any]) -> Any:
    """Role and text alone: clients add `type`, `id` and the like to a message that they repeat."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in content]
        content = texts[0] if len(texts) == 1 else texts
    return [message.get("role"), content]


def _hash(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:32]
