"""Completions through the real `openai` client, with a real model behind it."""

from __future__ import annotations

from typing import Any

import openai
import pytest

pytestmark = pytest.mark.integration

PROMPT = "The capital of France is"


def complete(client: openai.OpenAI, **options: Any) -> Any:
    completions: Any = client.completions
    asked = {"model": "support-assistant", "prompt": PROMPT, "max_tokens": 6, "temperature": 0}
    return completions.create(**asked | options)


def test_a_completion_and_a_streamed_completion_are_the_same(openai_client: Any) -> None:
    whole = complete(openai_client)
    chunks = list(complete(openai_client, stream=True, stream_options={"include_usage": True}))
    assert whole.choices[0].text == "".join(c.choices[0].text for c in chunks if c.choices)
    assert whole.usage.completion_tokens == chunks[-1].usage.completion_tokens == 6
    assert whole.model == "support-assistant"
    assert {chunk.model for chunk in chunks} == {"support-assistant"}


@pytest.mark.parametrize("stream", [False, True])
def test_an_echo_repeats_the_prompt(openai_client: Any, stream: bool) -> None:
    answer = complete(openai_client, echo=True, stream=stream)
    parts = list(answer) if stream else [answer]
    text = "".join(part.choices[0].text for part in parts)
    assert text == PROMPT + complete(openai_client).choices[0].text


def test_an_echo_has_the_log_probabilities_of_the_prompt(openai_client: Any) -> None:
    logprobs = complete(openai_client, echo=True, logprobs=1, max_tokens=1).choices[0].logprobs
    assert "".join(logprobs.tokens).startswith(PROMPT)
    assert logprobs.token_logprobs[0] is None
    assert all(value <= 0 for value in logprobs.token_logprobs[1:])


def test_log_probabilities_are_as_many_as_asked(openai_client: Any) -> None:
    logprobs = complete(openai_client, logprobs=2).choices[0].logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == 6
    assert all(len(top) >= 2 for top in logprobs.top_logprobs)


def test_prompts_in_a_list_are_answered_in_their_order(openai_client: Any) -> None:
    other = "One, two, three,"
    together = complete(openai_client, prompt=[PROMPT, other])
    alone = [complete(openai_client, prompt=one).choices[0].text for one in (PROMPT, other)]
    assert [choice.text for choice in together.choices] == alone
    assert [choice.index for choice in together.choices] == [0, 1]
    assert together.usage.completion_tokens == 12


def test_token_ids_are_a_prompt_alone_and_in_a_list(openai_client: Any) -> None:
    ids = [504, 3575, 282]
    one = complete(openai_client, prompt=ids)
    two = complete(openai_client, prompt=[ids, ids])
    assert one.usage.prompt_tokens == 3
    assert [choice.text for choice in two.choices] == [one.choices[0].text] * 2


def test_a_token_id_outside_the_vocabulary_is_refused(openai_client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        complete(openai_client, prompt=[10**6])
    assert caught.value.type == "invalid_request_error"


def test_several_choices_of_one_prompt(openai_client: Any) -> None:
    answer = complete(openai_client, n=3, temperature=1, seed=3)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert answer.usage.completion_tokens <= 18


def test_a_suffix_is_refused_by_name(openai_client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        complete(openai_client, suffix="!")
    assert caught.value.param == "suffix"


def test_a_prompt_that_is_too_long_says_so(openai_client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        complete(openai_client, prompt="word " * 6000)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "prompt")
