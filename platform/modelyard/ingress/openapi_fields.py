"""JSON schemas of the OpenAI routes' fields, for the OpenAPI description.

They say what is checked here; the engine checks the rest, and what depends on the model.
"""

from __future__ import annotations

from typing import Any, Final

from modelyard.contract.grammar import MAX_TOOLS
from modelyard.contract.messages import MAX_MESSAGES, ROLES
from modelyard.contract.openai import FIELDS, MAX_N, MAX_PROMPTS, READ
from modelyard.contract.operations import Operation
from modelyard.contract.ranges import FLAGS, NUMBERS
from modelyard.contract.sampling import MAX_BIAS, MAX_LIST, MAX_LOGPROBS, MAX_STOPS

_FLAG: Final[dict[str, Any]] = {"type": "boolean"}
_OBJECT: Final = {"type": "object"}
_TEXT: Final = {"type": "string", "minLength": 1}
_TOKEN: Final = {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**31}
_TOKENS: Final = {"type": "array", "minItems": 1, "items": _TOKEN}
_CAP: Final = {"type": "integer", "minimum": 1}
_LOGPROBS: Final = {"type": "integer", "minimum": 0, "maximum": MAX_LOGPROBS}
_PART: Final = {
    "type": "object",
    "required": ["type", "text"],
    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
    "additionalProperties": False,
}
_MESSAGE: Final = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": list(ROLES)},
        "content": {"type": ["string", "array", "null"], "items": _PART},
    },
}

_INPUTS: Final = {
    Operation.CHAT: "messages",
    Operation.COMPLETIONS: "prompt",
    Operation.RESPONSES: "input",
}


def _one_or_list(one: dict[str, Any], most: int, least: int = 0) -> dict[str, Any]:
    return {"anyOf": [one, {"type": "array", "minItems": least, "maxItems": most, "items": one}]}


_FIELDS: Final[dict[str, dict[str, Any]]] = {
    **{name: allowed.schema() for name, allowed in NUMBERS.items()},
    **dict.fromkeys(FLAGS, _FLAG),
    "messages": {
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_MESSAGES,
        "items": _MESSAGE,
    },
    "prompt": {
        "anyOf": [
            _TEXT,
            _TOKENS,
            {"type": "array", "minItems": 1, "maxItems": MAX_PROMPTS, "items": _TEXT},
            {"type": "array", "minItems": 1, "maxItems": MAX_PROMPTS, "items": _TOKENS},
        ]
    },
    "input": {
        "anyOf": [_TEXT, {"type": "array", "minItems": 1, "items": _OBJECT}],
    },
    "instructions": {"type": "string"},
    "max_tokens": _CAP,
    "max_output_tokens": _CAP,
    "max_completion_tokens": _CAP,
    "n": _CAP | {"maximum": MAX_N},
    "stop": _one_or_list(_TEXT, MAX_STOPS),
    "stop_token_ids": {"type": "array", "maxItems": MAX_LIST, "items": _TOKEN},
    "logit_bias": {
        "type": "object",
        "maxProperties": MAX_LIST,
        "propertyNames": {"pattern": "^[0-9]{1,10}$"},
        "additionalProperties": {"type": "number", "minimum": -MAX_BIAS, "maximum": MAX_BIAS},
    },
    "top_logprobs": _LOGPROBS,
    "logprobs": {"anyOf": [_FLAG, _LOGPROBS]},
    "tools": {"type": "array", "maxItems": MAX_TOOLS, "items": _OBJECT},
    "tool_choice": {"type": ["string", "object"]},
    "response_format": _OBJECT,
    "structured_outputs": _OBJECT,
    "stream_options": _OBJECT,
    "user": {},  # read by nobody here
    "prompt_cache_key": {"type": "string", "minLength": 1, "maxLength": 256},
    "model": {"type": "string", "minLength": 1},
}


def openai_schema(operation: Operation) -> dict[str, Any]:
    """The schema of an OpenAI route's body: its allow-list, and what each field may hold."""
    names = sorted(FIELDS[operation] | READ[operation])
    return {
        "type": "object",
        "required": ["model", _INPUTS[operation]],
        "properties": {name: _FIELDS.get(name, {}) for name in names},
    }
