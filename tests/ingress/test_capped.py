"""A cap on work that was prepared: the engine's own field of each operation, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from modelyard.config.routes import RouteLimits
from modelyard.contract.operations import Kind, Operation
from modelyard.ingress.capped import capped
from modelyard.ingress.work import Work, make_work
from modelyard.testing.in_memory import description

LIMITS = RouteLimits(max_output_tokens=400, default_max_output_tokens=300)
GENERATOR = description("gen@1.0.0", Kind.GENERATOR)
CAPS = {
    Operation.GENERATE: "max_output_tokens",
    Operation.CHAT: "max_completion_tokens",
    Operation.COMPLETIONS: "max_tokens",
    Operation.RESPONSES: "max_output_tokens",
}
SMALL = [operation for operation in Operation if operation not in CAPS]

Body = Callable[..., dict[str, Any]]


def made(operation: Operation, body: dict[str, Any]) -> Work:
    return make_work(operation, body, LIMITS, GENERATOR)


@pytest.mark.parametrize(("operation", "field"), CAPS.items())
def test_only_the_cap_changes(operation: Operation, field: str, body_for: Body) -> None:
    given = body_for(operation, temperature=0.25, seed=2**53 + 1)
    if operation is Operation.GENERATE:
        given["max_output_tokens"] = 300
    work = made(operation, given)
    lower = capped(work, operation, 128)
    assert (work.cap_tokens, lower.cap_tokens) == (300, 128)
    assert json.loads(lower.encoded) == json.loads(work.encoded) | {field: 128}
    assert (lower.stream, lower.ignored, lower.choices, lower.deadline_ms) == (
        work.stream,
        work.ignored,
        work.choices,
        work.deadline_ms,
    )


@pytest.mark.parametrize("operation", CAPS)
def test_a_capped_body_is_what_its_caller_could_have_asked_for(
    operation: Operation, body_for: Body
) -> None:
    name = "max_output_tokens" if operation is Operation.GENERATE else CAPS[operation]
    asked = body_for(operation) | {name: 128}
    lower = capped(made(operation, asked | {name: 300}), operation, 128)
    assert lower == made(operation, asked)


@pytest.mark.parametrize("operation", CAPS)
@pytest.mark.parametrize("cap", [300, 301])
def test_a_cap_that_is_no_lower_changes_nothing(
    operation: Operation, cap: int, body_for: Body
) -> None:
    given = body_for(operation)
    if operation is Operation.GENERATE:
        given["max_output_tokens"] = 300
    work = made(operation, given)
    assert capped(work, operation, cap) is work


@pytest.mark.parametrize("operation", SMALL)
def test_small_models_have_nothing_to_cap(operation: Operation, body_for: Body) -> None:
    work = made(operation, body_for(operation))
    assert capped(work, operation, 1) is work


def test_a_text_in_another_script_stays_what_it_is(body_for: Body) -> None:
    work = made(
        Operation.COMPLETIONS, body_for(Operation.COMPLETIONS, prompt="naïve 模型 \U0001f600")
    )
    assert "naïve 模型 \U0001f600".encode() in capped(work, Operation.COMPLETIONS, 1).encoded
