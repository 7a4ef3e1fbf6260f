from __future__ import annotations

import random
import string
from typing import Any

import pytest

from modelyard.contract.operations import Operation
from modelyard.quota import estimate
from modelyard.quota.estimate import SAMPLE_CHARACTERS, estimate_tokens, input_tokens, need_of

ENGLISH = "The request may use more tokens than its quota allows, so it has to wait a little. "


@pytest.mark.parametrize(
    ("text", "tokens"),  # by SmolLM2's own tokenizer
    [
        (ENGLISH, 20),
        ("Könnten Sie bitte prüfen, ob die Zahlung eingegangen ist?", 23),
        ("请问能否帮我查询一下付款是否成功", 28),
        ('{"id": 4711, "total": 12.50, "status": "open"}', 25),
    ],
)
def test_an_estimate_is_near_and_seldom_low(text: str, tokens: int) -> None:
    assert 0.85 * tokens <= estimate_tokens(text) <= 1.6 * tokens


def test_a_long_text_is_sampled_and_costs_no_more() -> None:
    long = ENGLISH * (20 * SAMPLE_CHARACTERS // len(ENGLISH))
    alone = estimate_tokens(ENGLISH * 50)
    assert estimate_tokens(long) == pytest.approx(alone * len(long) / len(ENGLISH * 50), rel=0.1)


def test_half_a_surrogate_pair_does_not_fail() -> None:
    assert estimate_tokens("a\ud800b") > 0


def test_token_ids_are_counted_exactly() -> None:
    assert input_tokens(Operation.EMBED, {"input": [[1, 2, 3], [4]]}) == (4, True)
    assert input_tokens(Operation.COMPLETIONS, {"prompt": [1, 2, 3]}) == (3, True)


def test_a_query_counts_once_for_each_document() -> None:
    one, _ = input_tokens(Operation.RERANK, {"query": ENGLISH, "documents": ["a"]})
    three, _ = input_tokens(Operation.RERANK, {"query": ENGLISH, "documents": ["a"] * 3})
    assert three == 3 * one
    pairs, _ = input_tokens(Operation.SCORE, {"text_1": ENGLISH, "text_2": ["a", "a", "a"]})
    assert pairs == three


def test_every_text_of_a_chat_counts_its_tools_too() -> None:
    plain = {"messages": [{"role": "user", "content": ENGLISH}]}
    tools = [{"type": "function", "function": {"name": "f", "description": ENGLISH * 3}}]
    alone, _ = input_tokens(Operation.CHAT, plain)
    with_tools, _ = input_tokens(Operation.CHAT, {**plain, "tools": tools})
    assert with_tools - alone >= estimate_tokens(ENGLISH * 3)


@pytest.mark.parametrize("operation", list(Operation))
def test_every_operation_has_an_estimate(operation: Operation) -> None:
    bodies: dict[Operation, dict[str, Any]] = {
        Operation.GENERATE: {"messages": [{"role": "user", "content": ENGLISH}]},
        Operation.CHAT: {"messages": [{"role": "user", "content": ENGLISH}]},
        Operation.COMPLETIONS: {"prompt": [ENGLISH, ENGLISH]},
        Operation.RESPONSES: {"input": ENGLISH, "instructions": ENGLISH},
        Operation.EMBED: {"input": ENGLISH},
        Operation.CLASSIFY: {"input": [ENGLISH]},
        Operation.RERANK: {"query": ENGLISH, "documents": [{"text": ENGLISH}]},
        Operation.SCORE: {"queries": ENGLISH, "documents": [ENGLISH]},
    }
    tokens, is_exact = input_tokens(operation, bodies[operation])
    assert tokens >= 18
    assert not is_exact


def test_of_two_caps_the_larger_is_reserved() -> None:
    body = {"messages": [], "max_tokens": 1, "max_completion_tokens": 30}
    need = need_of("r", "acme", "generator", Operation.CHAT, body, cap_tokens=1, choices=2)
    assert (need.output_tokens, need.sequences, need.output_is_explicit) == (60, 2, True)


def test_the_routes_own_cap_is_not_the_callers() -> None:
    need = need_of("r", "acme", "generator", Operation.CHAT, {"messages": []}, 256, 1)
    assert (need.output_tokens, need.output_is_explicit) == (256, False)


def test_random_text_is_never_absurd() -> None:
    rng = random.Random(0)
    for _ in range(50):
        text = "".join(rng.choices(string.printable, k=500))
        assert 100 <= estimate_tokens(text) <= 700


def test_only_what_a_model_sees_of_a_response_counts() -> None:
    body = {"model": "m", "input": "hello"}
    ignored = body | {"metadata": {"a": "x" * 1000}, "zzz": ["a"] * 1000}
    assert input_tokens(Operation.RESPONSES, ignored) == input_tokens(Operation.RESPONSES, body)


def test_many_small_parts_are_weighed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def weigh(text: str) -> int:
        calls.append(text)
        return len(text)

    monkeypatch.setattr(estimate, "estimate_tokens", weigh)
    parts = [{"type": "text", "text": "a"}] * 1000
    body = {"messages": [{"role": "user", "content": parts}]}
    tokens, _ = input_tokens(Operation.CHAT, body)
    assert tokens > 1000
    assert len(calls) <= 2
