import json
from typing import Any, get_args

import pytest

from modelyard.bench.wire.formats import FORMATS, encoded, read_whole
from modelyard.bench.wire.reading import Reading, cause
from modelyard.bench.wire.sse import Event
from modelyard.bench.wire.texts import Texts
from modelyard.contract.native import GenerateRequest
from modelyard.contract.small import ClassifyRequest, EmbeddingsRequest, RerankRequest, ScoreRequest
from modelyard.workload.mix import RouteName, Stream
from modelyard.workload.plan import Planned


def body(route: RouteName, **fields: Any) -> dict[str, Any]:
    stream = Stream.model_validate({"name": "a", "route": route, "model": "m"} | fields)
    record: dict[str, Any] = json.loads(encoded(Planned(3, 0.0, stream, 20, 8), Texts(1)))
    return record


def read(route: RouteName, *events: tuple[str, Any]) -> Reading:
    reading = Reading()
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        reading.pieces += FORMATS[route].event(Event(name, text), reading)
    return reading


def test_every_route_has_a_format() -> None:
    assert set(FORMATS) == set(get_args(RouteName))


def test_the_platform_takes_the_bodies_of_its_own_routes() -> None:
    GenerateRequest.model_validate(body("generate", deadline_ms=500))
    EmbeddingsRequest.model_validate(body("embeddings", items=3))
    ClassifyRequest.model_validate(body("classify"))
    RerankRequest.model_validate(body("rerank", items=5))
    ScoreRequest.model_validate(body("score", items=2))


def test_openai_bodies_ask_for_usage_at_the_end_of_a_stream() -> None:
    streamed, unary = body("chat"), body("completions", stream=False)
    assert streamed["stream_options"] == {"include_usage": True}
    assert streamed["max_tokens"] == unary["max_tokens"] == 8
    assert "stream" not in unary
    assert body("responses")["max_output_tokens"] == 8


def test_prompts_have_the_wanted_length_and_repeat_with_the_seed() -> None:
    (message,) = body("chat")["messages"]
    assert len(message["content"].split()) == 20
    assert body("chat") == body("chat")
    assert len(body("embeddings", items=3)["input"]) == 3


def test_a_shared_prefix_is_the_same_for_all_and_part_of_the_length() -> None:
    system, user = body("chat", shared_prefix_tokens=15)["messages"]
    assert (len(system["content"].split()), len(user["content"].split())) == (15, 5)
    texts = Texts(1)
    assert texts.prefix(15) == system["content"]
    assert len(texts.prefix(100_000).split()) == 100_000


def test_further_fields_are_added_and_a_null_takes_one_out() -> None:
    extra = {"max_tokens": None, "max_completion_tokens": 5, "ignore_eos": True}
    record = body("chat", extra_body=extra)
    assert "max_tokens" not in record
    assert record["max_completion_tokens"] == 5
    assert record["ignore_eos"] is True


def test_a_native_stream() -> None:
    done = {"finish_reason": "stop", "usage": {"input_tokens": 7, "output_tokens": 2}}
    reading = read("generate", ("delta", {"text": "a"}), ("delta", {"text": ""}), ("done", done))
    assert reading == Reading(pieces=1, input_tokens=7, output_tokens=2, ended=True)
    failed = read("generate", ("error", {"code": "overloaded", "message": "full"}))
    assert failed.error == ("overloaded", "overloaded")
    assert not failed.ended


def test_a_chat_stream_counts_only_pieces_with_content() -> None:
    reading = read(
        "chat",
        ("", {"choices": [{"delta": {"role": "assistant", "content": ""}}]}),
        ("", {"choices": [{"delta": {"reasoning_content": "hm"}}]}),
        ("", {"choices": [{"delta": {"content": "a"}}]}),
        ("", {"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]}),
        ("", {"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        ("", {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9}}),
        ("", "[DONE]"),
    )
    assert reading == Reading(pieces=3, input_tokens=3, output_tokens=9, ended=True)


def test_without_usage_a_piece_is_a_token() -> None:
    reading = read("completions", ("", {"choices": [{"text": "a"}]}), ("", "[DONE]"))
    assert reading.made_tokens() == 1


def test_an_error_followed_by_done_is_no_success() -> None:
    reading = read("chat", ("", {"error": {"code": "replica_failed"}}), ("", "[DONE]"))
    assert reading.error == ("replica_failed", "replica_failed")
    assert not reading.ended


@pytest.mark.parametrize("ending", ["response.completed", "response.incomplete"])
def test_a_responses_stream(ending: str) -> None:
    usage = {"input_tokens": 4, "output_tokens": 6}
    reading = read(
        "responses",
        ("response.created", {"type": "response.created", "response": {}}),
        ("", {"type": "response.output_text.delta", "delta": "a"}),
        ("", {"type": ending, "response": {"usage": usage}}),
    )
    assert reading == Reading(pieces=1, input_tokens=4, output_tokens=6, ended=True)


def test_a_failed_responses_stream() -> None:
    for event in (
        {"type": "response.failed", "response": {"error": {"code": "server_error"}}},
        {"type": "error", "code": "server_error", "message": "x"},
    ):
        assert read("responses", ("", event)).error == ("server_error", "server_error")


def test_a_whole_answer_with_its_usage() -> None:
    reading = read_whole(b'{"error": null, "usage": {"prompt_tokens": 5, "total_tokens": 5}}')
    assert reading == Reading(input_tokens=5, ended=True)
    assert read_whole(b'{"error": {"code": "x"}}').error == ("x", "x")
    with pytest.raises(ValueError, match="no JSON object"):
        read_whole(b"[]")


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"code": "overloaded", "message": "m"}, ("overloaded", "overloaded")),
        (
            {"error": {"modelyard_code": "overloaded", "code": "o", "reason": "queue_full"}},
            ("overloaded", "queue_full"),
        ),
        ({"error": {"type": "BadRequestError", "code": 400}}, ("BadRequestError",) * 2),
        ({"error": "busy"}, ("", "busy")),
        ({"detail": "Not Found"}, ("", "Not Found")),
        ({"error": {"code": "x" * 100}}, ("", "")),
        (None, ("", "")),
    ],
)
def test_causes_are_found_in_the_error_bodies_in_use(
    record: Any, expected: tuple[str, str]
) -> None:
    assert cause(record) == expected
