"""What is read of vLLM's answer to a golden question."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

from deployments.vllm_golden import generated, golden_request
from modelyard.contract.operations import Kind, Operation
from modelyard.lifecycle.observed import Generated
from modelyard.lifecycle.questions import DEFAULTS, GeneratorQuestion


def place(token: int, logprob: float, others: dict[int, float]) -> Any:
    top = [SimpleNamespace(token=f"token_id:{one}", logprob=p) for one, p in others.items()]
    return SimpleNamespace(token=f"token_id:{token}", logprob=logprob, top_logprobs=top)


def test_the_ids_and_the_likeliest_of_each_place_are_read() -> None:
    choice = SimpleNamespace(
        message=SimpleNamespace(content="so"),
        token_ids=[7, 8],
        logprobs=SimpleNamespace(content=[place(7, -0.5, {9: -1.0}), place(8, -9.0, {3: -0.1})]),
    )
    answer = generated(SimpleNamespace(prompt_token_ids=[1, 2], choices=[choice]))
    assert (answer.prompt_token_ids, answer.token_ids, answer.text) == ((1, 2), (7, 8), "so")
    assert answer.logprobs == ({7: -0.5, 9: -1.0}, {8: -9.0, 3: -0.1})


def test_vllm_takes_the_question() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    question = DEFAULTS[Kind.GENERATOR][1]
    assert isinstance(question, GeneratorQuestion)
    operation, body = golden_request(question, chats=True)
    request = ChatCompletionRequest.model_validate({"model": "m"} | body)
    assert operation is Operation.CHAT
    assert (request.temperature, request.return_token_ids, request.top_logprobs) == (0, True, 5)
    assert len(request.messages) == 2


def test_a_version_without_a_chat_template_completes_the_texts() -> None:
    question = DEFAULTS[Kind.GENERATOR][1]
    assert isinstance(question, GeneratorQuestion)
    operation, body = golden_request(question, chats=False)
    assert operation is Operation.COMPLETIONS
    assert body["prompt"].endswith("\nWhere is my order?")
    choice = SimpleNamespace(
        text="so",
        prompt_token_ids=[1],
        token_ids=[7],
        logprobs=SimpleNamespace(top_logprobs=[{"token_id:7": -0.5, "token_id:9": -1.0}]),
    )
    answer = generated(SimpleNamespace(choices=[choice]))
    assert answer == Generated((1,), (7,), "so", ({7: -0.5, 9: -1.0},))
