"""The key by which requests that share a prompt's beginning find the replica that has it cached."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from modelyard.contract.operations import OPERATIONS_OF, Kind, Operation

# About 128 tokens, four of the engine's blocks: a shorter prefix is worth less than the
# conversation's own history, which then decides.
LEAST_CHARACTERS: Final = 512
# Only the beginning: what a caller appends to its system prompt (a date, a name) would otherwise
# give each conversation a key of its own, although they share all but the last block.
PREFIX_CHARACTERS: Final = 1024
_SYSTEM: Final = ("system", "developer")


def affinity_key(
    operation: Operation, body: Mapping[str, Any], version: str, tenant: str, conversation: str
) -> str:
    """Version, tenant and the shared prefix, hashed; "" when there is nothing to find again.

    The prefix is what the system messages say, of a completion its prompt; without one long
    enough it is the conversation. Version and tenant are in it because a cache holds for one of
    each only. Small models cache nothing and have no key.
    """
    if operation not in OPERATIONS_OF[Kind.GENERATOR]:
        return ""
    prefix = _prefix(operation, body)
    shared = prefix if len(prefix) >= LEAST_CHARACTERS else conversation
    if not shared:
        return ""
    text = "\0".join((version, tenant, shared)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _prefix(operation: Operation, body: Mapping[str, Any]) -> str:
    if operation is Operation.COMPLETIONS:
        prompt = body.get("prompt")
        return _cut(_first_prompt(prompt))
    said = _cut(body.get("instructions"))
    messages = body.get("input" if operation is Operation.RESPONSES else "messages")
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict) or message.get("role") not in _SYSTEM:
            break
        said += "\n" + _text(message.get("content"))
        if len(said) >= PREFIX_CHARACTERS:
            break
    return said[:PREFIX_CHARACTERS]


def _first_prompt(prompt: Any) -> Any:
    """Of several prompts the first stands for all. Token ids are written out."""
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        prompt = prompt[0]
    return str(prompt[:PREFIX_CHARACTERS]) if isinstance(prompt, list) else prompt


def _text(content: Any) -> str:
    if not isinstance(content, list):
        return _cut(content)
    parts = (part.get("text") if isinstance(part, dict) else None for part in content)
    return "".join(_cut(part) for part in parts)


def _cut(text: Any) -> str:
    return text[:PREFIX_CHARACTERS] if isinstance(text, str) else ""
