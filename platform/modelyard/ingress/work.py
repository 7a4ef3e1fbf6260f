"""Validation: a body becomes the work that an engine may be asked to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from modelyard.config.routes import Deadlines, RouteLimits
from modelyard.contract.errors import InvalidRequest
from modelyard.contract.headers import DEADLINE_MS, STAINLESS_READ_TIMEOUT
from modelyard.contract.native import GenerateRequest
from modelyard.contract.openai import FIELDS, filter_fields
from modelyard.contract.operations import Operation
from modelyard.contract.small import (
    ClassifyRequest,
    EmbeddingsRequest,
    RerankRequest,
    ScoreRequest,
)
from modelyard.contract.validate import validated
from modelyard.lifecycle.report import Description

SMALL: Final[dict[Operation, type[BaseModel]]] = {
    Operation.EMBED: EmbeddingsRequest,
    Operation.CLASSIFY: ClassifyRequest,
    Operation.RERANK: RerankRequest,
    Operation.SCORE: ScoreRequest,
}
# Where each route's engine reads the cap.
ENGINE_CAPS: Final = {
    Operation.CHAT: "max_completion_tokens",
    Operation.COMPLETIONS: "max_tokens",
    Operation.RESPONSES: "max_output_tokens",
}
# Callers send these by habit; they choose nothing here and are no mistake.
HARMLESS: Final = frozenset(("model", "user"))
MAX_NAME_CHARACTERS: Final = 256
LEAST_DEADLINE: Final = 0.001
MAX_HEAD_START_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Work:
    """What to run: the body for the shell, `encoded`, and what the platform read for itself.

    `cap_tokens` bounds the output of one choice (0 for small models); `choices` is n times prompts;
    `deadline_ms` is the native route's own field.
    """

    encoded: bytes
    stream: bool = False
    ignored: tuple[str, ...] = ()
    cap_tokens: int = 0
    choices: int = 1
    deadline_ms: int | None = None


def alias_of(body: Mapping[str, Any]) -> str:
    alias = body.get("model")
    if not isinstance(alias, str | None):
        raise InvalidRequest("model must be text: name one of GET /v1/models", param="model")
    if not alias:
        raise InvalidRequest("model is required: name one of GET /v1/models", param="model")
    if len(alias) > MAX_NAME_CHARACTERS:
        # It is echoed and logged: a prompt in the wrong field must not be.
        raise InvalidRequest(
            f"model is longer than {MAX_NAME_CHARACTERS} characters: name one of GET /v1/models",
            param="model",
        )
    return alias


def make_work(
    operation: Operation, body: dict[str, Any], limits: RouteLimits, description: Description
) -> Work:
    """Validate a body for its operation. Raises InvalidRequest with the field in `param`.

    Pure, and slow for a large body: call it on a thread for one over 64 KiB.
    """
    if operation is Operation.GENERATE:
        return _native(body, limits, description)
    if operation in FIELDS:
        return _openai(operation, body, limits, description)
    return _small(operation, body)


def _native(body: dict[str, Any], limits: RouteLimits, description: Description) -> Work:
    request = validated(GenerateRequest, _without_nulls(body))
    cap = _within(request.max_output_tokens, limits, description, "max_output_tokens")
    return Work(
        _encoded(request.model_dump(exclude_none=True)),
        request.stream,
        cap_tokens=cap,
        deadline_ms=request.deadline_ms,
    )


def _openai(
    operation: Operation, body: dict[str, Any], limits: RouteLimits, description: Description
) -> Work:
    fields = filter_fields(operation, body)
    if fields.cap_tokens is None:
        cap = min(limits.default_max_output_tokens, _maximum(limits, description))
    else:
        cap = _within(fields.cap_tokens, limits, description, fields.cap_param)
    passed = dict(fields.passed)
    passed[ENGINE_CAPS[operation]] = cap
    prompt = passed.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1
    choices = prompts * passed.get("n", 1)
    return Work(_encoded(passed), fields.stream, fields.ignored, cap, choices)


def _small(operation: Operation, body: dict[str, Any]) -> Work:
    model = SMALL[operation]
    given = _without_nulls(body)
    request = validated(model, given)
    known = frozenset(model.model_fields) | HARMLESS
    ignored = tuple(sorted(name for name in given if name not in known))
    # Not model_dump: it would copy a hundred thousand numbers that are plain JSON already.
    return Work(_encoded(_without_nulls(dict(request))), ignored=ignored)


def _encoded(record: dict[str, Any]) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:  # of json for 1e999, of encode() for half a surrogate pair
        raise InvalidRequest(
            "the body holds a number or a text that JSON cannot hold: remove it"
        ) from error


def _without_nulls(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _maximum(limits: RouteLimits, description: Description) -> int:
    ours = limits.max_output_tokens
    return min(ours, description.max_output_tokens or ours)


def _within(cap: int, limits: RouteLimits, description: Description, param: str) -> int:
    maximum = _maximum(limits, description)
    if cap > maximum:
        raise InvalidRequest(
            f"{param} is more than {maximum}, this model's limit: ask for less",
            param=param,
            # The version's own limit, which the other arm may not have.
            reason="output_limit" if cap <= limits.max_output_tokens else None,
        )
    return cap


def deadline_s(work: Work, headers: Mapping[str, str]) -> float | None:
    """The caller's own total deadline in seconds, or None. The strictest of what was said."""
    said: list[float] = []
    if (deadline_ms := work.deadline_ms) is not None:
        said.append(deadline_ms / 1000)
    if (value := headers.get(DEADLINE_MS)) is not None:
        said.append(_positive(value, DEADLINE_MS) / 1000)
    if not work.stream and (value := headers.get(STAINLESS_READ_TIMEOUT)) is not None:
        patience_s = _positive(value, STAINLESS_READ_TIMEOUT)
        # The client gives up and sends it all again at that very moment: our 504, which it does
        # not retry, must be there before.
        said.append(patience_s - min(patience_s / 10, MAX_HEAD_START_S))
    return min(said, default=None)


def lowered(deadlines: Deadlines, own_s: float | None) -> Deadlines:
    """The route's deadlines under the caller's own total, which lowers and never raises them."""
    if own_s is None or own_s >= deadlines.total_s:
        return deadlines
    return Deadlines(
        first_token_s=min(deadlines.first_token_s, own_s),
        idle_s=min(deadlines.idle_s, own_s),
        total_s=own_s,
        early_status_s=deadlines.early_status_s,
    )


def _positive(text: str, header: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    # Not `0 <`: a number near the smallest is 0 once it is divided.
    if not LEAST_DEADLINE <= value < 1e9:
        raise InvalidRequest(f"{header} must be a number from {LEAST_DEADLINE} up", param=header)
    return value
