"""Each OpenAI route through the real `openai` client, with real models behind it."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

import openai
import pytest

from modelyard.config.demo import DEMO_KEY, NIGHTLY_KEY

pytestmark = pytest.mark.integration

FRANCE: Any = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def client(platform: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{platform.url}/v1", api_key=DEMO_KEY, max_retries=0)


def chat(client: openai.OpenAI, **options: Any) -> Any:
    completions: Any = client.chat.completions  # its overloads want every option spelled out
    asked = {"model": "support-assistant", "messages": FRANCE, "temperature": 0} | options
    return completions.create(**asked)


def test_a_chat_answers_under_the_alias_and_names_the_version(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="support-assistant",
        messages=FRANCE,
        temperature=0,
    )
    answer = raw.parse()
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.model == "support-assistant"
    assert (answer.system_fingerprint or "").startswith("smollm2-135m-instruct@1.0.0+")
    assert raw.headers["x-model-version"] == "smollm2-135m-instruct@1.0.0"
    assert raw.headers["x-rollout-arm"] == "stable"
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0


def test_a_streamed_chat_says_the_same_and_ends_with_usage(client: openai.OpenAI) -> None:
    whole = chat(client).choices[0].message.content
    chunks = list(chat(client, stream=True, stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole
    assert {chunk.model for chunk in chunks} == {"support-assistant"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].usage.completion_tokens > 0
    assert len(chunks) > 4


def test_a_chat_without_a_cap_runs_to_the_routes_default(client: openai.OpenAI) -> None:
    answer = chat(client, extra_body={"ignore_eos": True})
    assert answer.usage.completion_tokens == 256
    assert answer.choices[0].finish_reason == "length"


def test_several_choices_a_seed_a_stop_and_log_probabilities(client: openai.OpenAI) -> None:
    answer = chat(client, n=2, temperature=0.7, seed=7, logprobs=True, top_logprobs=2, max_tokens=8)
    assert len(answer.choices) == 2
    assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 2
    stopped = chat(client, stop=[" is"])
    assert stopped.choices[0].message.content == "The capital of France"


def test_a_json_schema_is_obeyed(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}},
        "required": ["city"],
        "additionalProperties": False,
    }
    answer = chat(
        client,
        max_tokens=60,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "city", "schema": schema, "strict": True},
        },
    )
    assert '"city"' in answer.choices[0].message.content


def test_a_forced_tool_is_called_with_arguments_that_fit_its_schema(client: openai.OpenAI) -> None:
    parameters = {
        "type": "object",
        "properties": {"order_id": {"type": "integer"}},
        "required": ["order_id"],
        "additionalProperties": False,
    }
    tool = {"type": "function", "function": {"name": "find_order", "parameters": parameters}}
    choice = {"type": "function", "function": {"name": "find_order"}}
    answer = chat(client, tools=[tool], tool_choice=choice, max_tokens=120)
    call = answer.choices[0].message.tool_calls[0].function
    assert call.name == "find_order"
    assert '"order_id"' in call.arguments


def test_a_completion_and_a_streamed_completion(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {
        "model": "support-assistant",
        "prompt": "The capital of France is",
        "max_tokens": 6,
        "temperature": 0,
    }
    whole = client.completions.create(**asked)
    text = "".join(c.choices[0].text for c in client.completions.create(**asked, stream=True))
    assert whole.choices[0].text == text
    assert whole.usage.completion_tokens == 6


def test_embeddings_in_both_encodings_are_the_same_unit_vectors(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "support-embed", "input": ["a refund", "money back"]}
    floats = client.embeddings.create(**asked, encoding_format="float")
    raw = client.embeddings.with_raw_response.create(**asked, encoding_format="base64")
    encoded = raw.http_response.json()["data"][0]["embedding"]
    numbers = struct.unpack("<384f", base64.b64decode(encoded))
    assert numbers == pytest.approx(floats.data[0].embedding, abs=1e-6)
    for item in floats.data:
        assert math.isclose(sum(x * x for x in item.embedding), 1.0, abs_tol=1e-4)
    assert floats.usage.prompt_tokens > 0


def test_similar_sentences_lie_closer_than_others(client: openai.OpenAI) -> None:
    texts = ["How do I get a refund?", "I want my money back", "The weather is nice today"]
    vectors = [
        d.embedding for d in client.embeddings.create(model="support-embed", input=texts).data
    ]
    near, far = (sum(a * b for a, b in zip(vectors[0], v, strict=True)) for v in vectors[1:])
    assert near > far + 0.1


def test_the_list_of_models_tells_their_kinds(client: openai.OpenAI) -> None:
    kinds = {model.id: model.kind for model in client.models.list()}  # type: ignore[attr-defined]
    assert kinds == {
        "support-assistant": "generator",
        "support-embed": "embedder",
        "support-intent": "classifier",
        "support-rerank": "reranker",
    }
    assert client.models.retrieve("support-embed").id == "support-embed"


def test_two_tenants_see_different_lists_and_only_theirs_answer(platform: Any) -> None:
    nightly = openai.OpenAI(base_url=f"{platform.url}/v1", api_key=NIGHTLY_KEY, max_retries=0)
    assert {model.id for model in nightly.models.list()} == {"support-embed", "support-intent"}
    with pytest.raises(openai.PermissionDeniedError):
        chat(nightly)
    assert nightly.embeddings.create(model="support-embed", input="hello").data


@pytest.mark.parametrize(
    ("options", "error", "code", "param"),
    [
        ({"model": "nobody"}, openai.NotFoundError, "model_not_found", "model"),
        ({"model": "support-embed"}, openai.BadRequestError, None, "model"),
        ({"max_tokens": 100_000}, openai.BadRequestError, None, "max_tokens"),
        ({"temperature": -1}, openai.BadRequestError, None, "temperature"),
        ({"extra_body": {"guided_json": {}}}, openai.BadRequestError, None, "guided_json"),
        ({"extra_body": {"priority": 1}}, openai.BadRequestError, None, "priority"),
        ({"messages": []}, openai.BadRequestError, None, "messages"),
        (
            {"messages": [{"role": "user", "content": "word " * 6000}]},
            openai.BadRequestError,
            "context_length_exceeded",
            "messages",
        ),
    ],
)
def test_a_wrong_request_gets_the_clients_own_error(
    client: openai.OpenAI,
    options: dict[str, Any],
    error: type[openai.APIStatusError],
    code: str | None,
    param: str,
) -> None:
    with pytest.raises(error) as caught:
        chat(client, **options)
    body: Any = caught.value.body
    assert (body["code"], body["param"]) == (code, param)
    assert caught.value.response.headers["x-should-retry"] == "false"


def test_a_wrong_key_is_an_authentication_error(platform: Any) -> None:
    stranger = openai.OpenAI(base_url=f"{platform.url}/v1", api_key="my_no_key", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        chat(stranger)
