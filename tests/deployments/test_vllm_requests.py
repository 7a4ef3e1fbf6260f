"""What passes between our envelope and vLLM's own classes, without an engine."""

from __future__ import annotations

import json
import warnings
from http import HTTPStatus
from typing import Any

import pytest

from deployments import vllm_requests
from deployments.vllm_requests import (
    DONE,
    ENGINE_FIELDS,
    NativeWriter,
    alias_writer,
    error_of_chunk,
    from_error_object,
    from_vllm,
    is_error_chunk,
    text_of_chunk,
)
from modelyard.contract.envelope import Envelope
from modelyard.contract.errors import Internal, InvalidRequest, Overloaded
from modelyard.contract.operations import Operation

SERVED = "gen@1.0.0"
MESSAGES = [{"role": "user", "content": "hello"}]
OURS = {"model": SERVED, "stream": False, "cache_salt": "salt-of-the-tenant"}
TOO_LONG = "This model's maximum context length is 2048 tokens, however you requested 4000"


@pytest.fixture(scope="module", autouse=True)
def vllm() -> None:
    """Imported once and with its own warnings: they are torch's, which this file is not about."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("VLLM_LOGGING_LEVEL", "ERROR")
        import vllm.entrypoints.openai.chat_completion.protocol
        import vllm.entrypoints.openai.completion.protocol
        import vllm.exceptions  # noqa: F401


def envelope(**body: Any) -> Envelope:
    data = json.dumps(body).encode()
    return Envelope("c", SERVED, "chat", data, False, 1000, "interactive", "r-1", "id-1", "chat")


def chunk(**fields: Any) -> str:
    return f"data: {json.dumps(fields, separators=(',', ':'))}\n\n"


def stream_chunk(text: str | None, *, model: str = SERVED) -> str:
    """A chunk as vLLM itself writes it."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionStreamResponse

    response = ChatCompletionStreamResponse.model_validate(
        {"model": model, "choices": [{"index": 0, "delta": {"content": text}}]}
    )
    return f"data: {response.model_dump_json(exclude_unset=True)}\n\n"


def test_vllm_reads_our_id_from_the_request_and_no_other_header() -> None:
    raw = vllm_requests.raw_request(envelope())
    assert dict(raw.headers) == {"x-request-id": "id-1"}


def test_a_chat_requests_platform_fields_are_ours_whatever_the_body_says() -> None:
    request = vllm_requests.chat_request(
        envelope(messages=MESSAGES, model="x", stream=True, cache_salt="mine", temperature=0.5),
        OURS,
    )
    assert (request.model, request.stream, request.cache_salt) == tuple(OURS.values())
    assert (request.messages, request.temperature) == (MESSAGES, 0.5)


def test_a_completion_requests_platform_fields_are_ours_whatever_the_body_says() -> None:
    request = vllm_requests.completion_request(
        envelope(prompt=["a", "b"], model="x", stream=True, cache_salt="mine", n=2), OURS
    )
    assert (request.model, request.stream, request.cache_salt) == tuple(OURS.values())
    assert (request.prompt, request.n) == (["a", "b"], 2)


def test_a_native_request_is_a_chat_request_that_always_streams() -> None:
    body = envelope(
        model="x", conversation_id="c-1", messages=MESSAGES, max_output_tokens=7, seed=3
    )
    request = vllm_requests.native_request(body, OURS)
    assert request.stream is True
    assert (request.model, request.cache_salt) == (SERVED, "salt-of-the-tenant")
    assert (request.max_completion_tokens, request.seed) == (7, 3)
    assert request.model_extra == {}


def test_a_field_that_vllm_refuses_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"^temperature: ") as caught:
        vllm_requests.chat_request(envelope(messages=MESSAGES, temperature="hot"), OURS)
    assert caught.value.param == "temperature"


@pytest.mark.parametrize("response_format", [{"type": "xml"}, {"type": 1}])
def test_the_place_of_a_refusal_holds_no_names_of_pydantics(response_format: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^response_format\.type: ") as caught:
        vllm_requests.chat_request(
            envelope(messages=MESSAGES, response_format=response_format), OURS
        )
    assert caught.value.param == "response_format.type"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("structured_outputs", "Failed to transform regex into a grammar: {}bad escape\n"),
        ("response_format", "Invalid JSON schema: {}no such type"),
        ("tools", "Failed to convert the structural tag: {}bad"),
    ],
)
def test_an_error_about_a_grammar_names_its_field_and_no_line_of_a_source(
    field: str, message: str
) -> None:
    from vllm.exceptions import VLLMValidationError

    body = json.dumps({"messages": MESSAGES, field: {"x": 1}}).encode()
    text = message.format("[08:07:54] /project/cpp/regex_converter.cc:83: ")
    for error in (ValueError(text), VLLMValidationError(text)):
        ours = from_vllm(error, "chat", body)
        assert isinstance(ours, InvalidRequest)
        assert (ours.message, ours.param) == (message.format("").strip(), field)
    other = from_vllm(ValueError("it is wrong"), "chat", body)
    assert other is not None
    assert other.param is None


def test_a_refusal_does_not_show_the_prompt() -> None:
    secret = "a very private prompt"
    with pytest.raises(InvalidRequest) as caught:
        vllm_requests.chat_request(envelope(messages=secret), OURS)
    assert caught.value.message.startswith("messages")
    assert secret not in caught.value.message


def test_fields_that_vllm_refuses_together_are_an_error_that_we_know() -> None:
    from vllm.exceptions import VLLMValidationError

    body = envelope(messages=MESSAGES, top_logprobs=3)
    # Pydantic lets it through, since it is no ValueError: the shell maps it like the engine's.
    with pytest.raises(VLLMValidationError) as caught:
        vllm_requests.chat_request(body, OURS)
    ours = from_vllm(caught.value, "chat")
    assert isinstance(ours, InvalidRequest)
    assert ours.param == "top_logprobs"


def test_what_vllm_says_of_the_request_is_the_callers_error() -> None:
    from vllm.exceptions import (
        VLLMClientError,
        VLLMNotFoundError,
        VLLMUnprocessableEntityError,
        VLLMValidationError,
    )

    ours = from_vllm(VLLMValidationError("is too hot", parameter="temperature", value=9), "chat")
    assert isinstance(ours, InvalidRequest)
    assert (ours.message, ours.param, ours.wire_code) == ("is too hot", "temperature", None)
    for error in (
        VLLMClientError("it is wrong"),
        VLLMNotFoundError("it is wrong"),
        VLLMUnprocessableEntityError("it is wrong"),
        ValueError("it is wrong"),
        TypeError("it is wrong"),
        OverflowError("it is wrong"),
    ):
        ours = from_vllm(error, "chat")
        assert isinstance(ours, InvalidRequest), error
        assert (ours.message, ours.param, ours.reason) == ("it is wrong", None, "invalid_request")


@pytest.mark.parametrize("parameter", ["input_tokens", "input_text", "max_tokens", None])
def test_a_prompt_that_is_too_long_has_openais_code(parameter: str | None) -> None:
    from vllm.exceptions import VLLMValidationError

    by_words = from_vllm(VLLMValidationError(TOO_LONG, parameter=parameter), "chat")
    plain = from_vllm(ValueError(TOO_LONG), "chat")
    for ours in (by_words, plain):
        assert isinstance(ours, InvalidRequest)
        assert (ours.reason, ours.wire_code) == ("context_length", "context_length_exceeded")
        assert ours.param == "messages"


def test_a_prompt_is_too_long_by_its_parameter_alone() -> None:
    from vllm.exceptions import VLLMValidationError

    ours = from_vllm(VLLMValidationError("too many", parameter="input_tokens", value=4000), "chat")
    assert ours is not None
    assert (ours.reason, ours.param) == ("context_length", "messages")


def test_an_engine_that_is_full_is_overload() -> None:
    from vllm.exceptions import GracefulHTTPError, MaxQueuedTokensError, QueueOverflowError

    for error in (
        QueueOverflowError(),  # type: ignore[no-untyped-call]
        MaxQueuedTokensError(),  # type: ignore[no-untyped-call]
        GracefulHTTPError("busy", HTTPStatus.SERVICE_UNAVAILABLE),
    ):
        ours = from_vllm(error, "chat")
        assert isinstance(ours, Overloaded)
        assert (ours.reason, ours.retry_after_s) == ("engine_full", 1)


def test_what_is_not_about_the_request_is_not_mapped() -> None:
    from vllm.exceptions import GenerationError, VLLMServerError
    from vllm.v1.engine.exceptions import EngineDeadError

    for error in (
        GenerationError(),
        VLLMServerError("server"),
        EngineDeadError(),
        RuntimeError("unknown"),
        KeyError("a bug"),
        NotImplementedError("unknown"),
    ):
        assert from_vllm(error, "chat") is None, error


@pytest.mark.parametrize("code", [400, 404, 422, 499])
def test_an_error_object_of_the_caller_keeps_its_words_and_its_param(code: int) -> None:
    ours = from_error_object(
        {"message": "is too hot", "param": "temperature", "code": code}, "chat"
    )
    assert isinstance(ours, InvalidRequest)
    assert (ours.message, ours.param) == ("is too hot", "temperature")


@pytest.mark.parametrize("code", [500, 501, 502, 399, "400", None])
def test_any_other_error_object_is_internal_and_leaks_nothing(code: Any) -> None:
    ours = from_error_object({"message": "CUDA error at 0xdead", "code": code}, "chat")
    assert isinstance(ours, Internal)
    assert "CUDA" not in ours.message
    assert isinstance(from_error_object({}, "chat"), Internal)


@pytest.mark.parametrize(
    ("operation", "param"),
    [
        (Operation.GENERATE, "messages"),
        (Operation.CHAT, "messages"),
        (Operation.COMPLETIONS, "prompt"),
        (Operation.RESPONSES, "input"),
    ],
)
def test_a_context_error_names_what_its_route_calls_the_input(
    operation: Operation, param: str
) -> None:
    ours = from_vllm(ValueError(TOO_LONG), operation)
    assert isinstance(ours, InvalidRequest)
    assert (ours.param, ours.wire_code) == (param, "context_length_exceeded")


def test_an_error_object_about_the_context_is_told_as_such() -> None:
    ours = from_error_object({"message": TOO_LONG, "param": None, "code": 400}, "chat")
    assert (ours.reason, ours.wire_code) == ("context_length", "context_length_exceeded")


def test_an_error_chunk_is_known_and_read() -> None:
    from vllm.entrypoints.serve.engine.protocol import ErrorInfo, ErrorResponse

    # As vLLM writes it in a stream.
    info = ErrorInfo(message="is too hot", type="BadRequestError", param="temperature", code=400)
    written = f"data: {json.dumps(ErrorResponse(error=info).model_dump())}\n\n"
    assert is_error_chunk(written)
    ours = error_of_chunk(written, "chat")
    assert isinstance(ours, InvalidRequest)
    assert (ours.message, ours.param) == ("is too hot", "temperature")
    broken = chunk(error={"message": "x", "type": "InternalServerError", "code": 500})
    assert is_error_chunk(broken)
    assert isinstance(error_of_chunk(broken, "chat"), Internal)


def test_an_answer_that_speaks_of_errors_is_no_error_chunk() -> None:
    assert not is_error_chunk(stream_chunk('data: {"error": 1}'))
    assert not is_error_chunk(DONE)


def test_a_chunks_text_is_what_it_adds() -> None:
    assert text_of_chunk(stream_chunk("héllo\n")) == "héllo\n"
    assert text_of_chunk(stream_chunk("")) == ""
    assert text_of_chunk(stream_chunk(None)) == ""
    assert text_of_chunk(chunk(choices=[{"delta": {}, "finish_reason": "stop"}])) == ""
    assert text_of_chunk(chunk(choices=[], usage={"total_tokens": 3})) == ""
    assert text_of_chunk(DONE) == ""


def test_native_events_are_numbered_without_gaps() -> None:
    write = NativeWriter()
    chunks = [stream_chunk(""), stream_chunk("a"), stream_chunk(None), stream_chunk("b"), DONE]
    written = [write(one) for one in chunks]
    assert written == [
        b"",
        b'event: delta\ndata: {"index": 0, "text": "a"}\n\n',
        b"",
        b'event: delta\ndata: {"index": 1, "text": "b"}\n\n',
        b"",
    ]


@pytest.mark.parametrize("alias", ["support-assistant", SERVED + "-x", 'a "quoted" one', "équipe"])
@pytest.mark.parametrize("text", ["hello", SERVED, f'"model":"{SERVED}"', f'\n\n"model":"{SERVED}'])
def test_only_the_model_field_takes_the_alias(alias: str, text: str) -> None:
    before = stream_chunk(text)
    after = alias_writer(SERVED, alias)(before)
    assert after.startswith(b"data: ")
    assert after.endswith(b"\n\n")
    record = json.loads(after[len("data: ") :])
    assert record == json.loads(before[len("data: ") :]) | {"model": alias}
    assert record["choices"][0]["delta"]["content"] == text


def test_a_chunk_of_another_model_is_left_as_it_is() -> None:
    other = stream_chunk("hello", model="another")
    assert alias_writer(SERVED, "alias")(other) == other.encode()
    assert alias_writer(SERVED, "alias")(DONE) == DONE.encode()


def test_a_chat_answer_holds_openais_fields_and_none_of_the_engines() -> None:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionResponse

    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}}
    record = _dumped(
        ChatCompletionResponse,
        {"choices": [choice | {"token_ids": [1], "routed_experts": "AA=="}]}
        | {"prompt_logprobs": [None], "prompt_token_ids": [1], "prompt_text": "private"},
    )
    assert "private" not in json.dumps(record)
    assert set(record["choices"][0]) == {
        *("index", "message", "logprobs", "finish_reason", "stop_reason")
    }
    assert record["choices"][0]["message"]["content"] == "hi"


def test_a_completion_answer_holds_openais_fields_and_none_of_the_engines() -> None:
    from vllm.entrypoints.openai.completion.protocol import CompletionResponse

    engine = {"token_ids": [1], "prompt_token_ids": [1], "prompt_logprobs": [None]}
    choices = [
        {"index": index, "text": "hi", "routed_experts": "AA=="} | engine for index in range(2)
    ]
    record = _dumped(CompletionResponse, {"choices": choices})
    assert [set(choice) for choice in record["choices"]] == 2 * [
        {"index", "text", "logprobs", "finish_reason", "stop_reason"}
    ]


def _dumped(model: Any, fields: dict[str, Any]) -> Any:
    """A real response of vLLM with every field filled, as the generator writes it."""
    response = model.model_validate(
        {
            "model": SERVED,
            "usage": {"prompt_tokens": 1, "total_tokens": 2, "completion_tokens": 1},
            "kv_transfer_params": {"host": "10.0.0.1"},
            "ec_transfer_params": {"host": "10.0.0.1"},
            "metrics": {"queue_time_ms": 1.0},
        }
        | fields
    )
    record = json.loads(response.model_dump_json(exclude=ENGINE_FIELDS))
    assert set(record) == {
        *("id", "object", "created", "model", "choices", "service_tier"),
        *("system_fingerprint", "usage"),
    }
    return record
