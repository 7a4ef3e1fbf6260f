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
FIRST_CHARACTERS: Final = 1024  # of a completion's prompt, which grows at its end


def conversation_key(
    operation: Operation, body: Mapping[str, Any], headers: Mapping[str, str], tenant: str
) -> str:
    """A hash that all requests of one conversation share, and no other tenant's; "" for none.

    What names it, in this order: `conversation_id` (native), X-Conversation-Id, `prompt_cache_key`,
    else the tenant, `user` and the first messages, which every later turn repeats. A small model's
    request belongs to no conversation unless its header names one. Raises InvalidRequest.
    """
    given = {
        "conversation_id": body.get("conversation_id") if operation is Operation.GENERATE else None,
        CONVERSATION_ID: headers.get(CONVERSATION_ID),
        "prompt_cache_key": body.get("prompt_cache_key") if operation in TURNS else None,
    }
    for name, value in given.items():
        if value is not None:
            return _hash(tenant, "named", _checked(value, name))
    if operation not in TURNS:
        return ""
    return _hash(tenant, "first", json.dumps([body.get("user"), _first(body)]))


def _checked(value: Any, name: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_CHARACTERS:
        raise InvalidRequest(
            f"{name} must be a text of 1 to {MAX_CHARACTERS} characters", param=name
        )
    return value


def _first(body: Mapping[str, Any]) -> Any:
    """What the second turn repeats of the first: all up to the first message of the user."""
    messages = body.get("messages", body.get("input", body.get("prompt")))
    if isinstance(messages, str):
        return messages[:FIRST_CHARACTERS]
    if not isinstance(messages, list):
        return None
    roles = [one.get("role") if isinstance(one, dict) else None for one in messages]
    turn = roles.index("user") + 1 if "user" in roles else len(messages)
    return [body.get("instructions"), messages[:turn]]


def _hash(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:32]
