"""Which of the features that a tenant can be entitled to a request uses, by its body alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from modelyard.contract.errors import Forbidden
from modelyard.contract.operations import Operation

# The only ones that can use any: native requests and small models have no such fields.
_OPENAI: Final = frozenset((Operation.CHAT, Operation.COMPLETIONS, Operation.RESPONSES))


def features_of(operation: Operation, body: Mapping[str, Any]) -> dict[str, str]:
    """feature -> the first field of the body that uses it. Never raises: a field of a wrong type
    uses nothing, and is another check's to refuse.

    Tools say nothing of structured outputs, although a forced call is made by a grammar too: they
    are sold as what a caller sees.
    """
    if operation not in _OPENAI:
        return {}
    used = {
        "tools": "tools" if body.get("tools") else None,
        "structured_outputs": _structured(body),
        "logprobs": _logprobs(operation, body),
        "choices": "n" if _is_int(n := body.get("n")) and n > 1 else None,
    }
    return {feature: field for feature, field in used.items() if field is not None}


def require_features(
    entitled: tuple[str, ...] | None, operation: Operation, body: Mapping[str, Any]
) -> None:
    """`entitled` is a claim's; None: all. Raises Forbidden naming the field."""
    if entitled is None:
        return
    for feature, field in features_of(operation, body).items():
        if feature not in entitled:
            raise Forbidden(
                f"your tenant may not use {feature}: leave {field} out",
                param=field,
                reason="entitlement",
            )


def _structured(body: Mapping[str, Any]) -> str | None:
    if body.get("structured_outputs") is not None:
        return "structured_outputs"
    if _constrains(body.get("response_format")):
        return "response_format"
    text = body.get("text")
    return "text.format" if isinstance(text, dict) and _constrains(text.get("format")) else None


def _constrains(form: Any) -> bool:
    """{"type": "text"} is what every answer is."""
    return isinstance(form, dict) and form.get("type") != "text"


def _logprobs(operation: Operation, body: Mapping[str, Any]) -> str | None:
    asked = body.get("logprobs")
    # 0 on completions: the log probability of each token that was chosen, and no others.
    if asked is True or (_is_int(asked) and (asked > 0 or operation is Operation.COMPLETIONS)):
        return "logprobs"
    if _is_int(top := body.get("top_logprobs")) and top > 0:
        return "top_logprobs"
    include = body.get("include")
    wanted = isinstance(include, list) and "message.output_text.logprobs" in include
    return "include" if wanted else None


def _is_int(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
