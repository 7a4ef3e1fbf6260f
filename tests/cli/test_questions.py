import json
import shlex
from typing import Any

import httpx
import pytest

from modelyard.cli.questions import QUESTIONS, NoAnswer, Question, questions_of_others

ANSWERS: dict[str, dict[str, Any]] = {
    "support-assistant": {"choices": [{"message": {"content": "Paris."}}]},
    "support-embed": {"data": [{"embedding": [0.25, -0.5, 1.0, 0.0]}]},
    "support-intent": {"data": [{"label": "shipping", "probs": [0.1, 0.9]}]},
    "support-rerank": {"results": [{"index": 0, "relevance_score": 0.75}]},
}
SHOWN = {
    "support-assistant": "Paris.",
    "support-embed": "4 numbers: 0.250 -0.500 1.000 ...",
    "support-intent": "shipping (0.90)",
    "support-rerank": "Refunds for duplicate charges are paid within five working days. (0.75)",
}
each_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.alias)


def client(handler: Any) -> httpx.Client:
    return httpx.Client(base_url="http://x", transport=httpx.MockTransport(handler))


def test_there_is_one_question_for_each_kind_of_model() -> None:
    assert [question.alias for question in QUESTIONS] == list(ANSWERS)


@each_question
def test_an_answer_is_shown_in_a_line(question: Question) -> None:
    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=ANSWERS[question.alias])

    with client(handler) as http:
        assert question.ask(http) == SHOWN[question.alias]
    assert asked[0].url.path == question.path
    assert json.loads(asked[0].content)["model"] == question.alias


def test_a_model_at_zero_replicas_is_no_failure() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        error = {"error": {"modelyard_code": "overloaded", "reason": "not_loaded"}}
        return httpx.Response(503, json=error, headers={"Retry-After": "9"})

    with client(handler) as http:
        assert QUESTIONS[1].ask(http) == (
            "at zero replicas, and woken by this question: ask again in 9 s"
        )


@each_question
def test_an_error_is_told_with_its_status(question: Question) -> None:
    with (
        client(lambda request: httpx.Response(503, text="not loaded")) as http,
        pytest.raises(NoAnswer, match=f"{question.alias} answered 503: not loaded"),
    ):
        question.ask(http)


def test_a_connection_that_fails_is_told() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with client(handler) as http, pytest.raises(NoAnswer, match="did not answer: refused"):
        QUESTIONS[0].ask(http)


@each_question
def test_the_curl_line_is_ready_to_paste(question: Question) -> None:
    words = shlex.split(question.curl("http://127.0.0.1:8000", "my_demo-1_key"))
    assert words[:3] == ["curl", "-s", f"http://127.0.0.1:8000{question.path}"]
    assert "Authorization: Bearer my_demo-1_key" in words
    assert "Content-Type: application/json" in words
    assert json.loads(words[words.index("-d") + 1]) == question.body


def test_a_quote_in_a_body_survives_the_shell() -> None:
    question = Question("m", "/x", {"input": "It's late"}, str)
    words = shlex.split(question.curl("http://x", "k"))
    assert json.loads(words[words.index("-d") + 1]) == {"input": "It's late"}


@pytest.mark.parametrize("text", ["<html>hello</html>", "{}", "[]", '{"choices": []}', "null"])
def test_another_servers_answer_is_told(text: str) -> None:
    with (
        client(lambda request: httpx.Response(200, text=text)) as http,
        pytest.raises(NoAnswer, match="answered something else than modelyard does"),
    ):
        QUESTIONS[0].ask(http)


MODELS = [
    {"id": "support-embed", "kind": "embedder"},
    {"id": "mine-rank", "kind": "reranker"},
    {"id": "mine-chat", "kind": "generator"},
    {"id": "never-loaded", "kind": None},
]


def test_other_aliases_get_the_question_of_their_kind() -> None:
    with client(lambda request: httpx.Response(200, json={"data": MODELS})) as http:
        chat, rank = questions_of_others(http)
    assert (chat.alias, chat.path) == ("mine-chat", "/v1/chat/completions")
    assert (rank.alias, rank.path) == ("mine-rank", "/v1/rerank")
    assert chat.body == QUESTIONS[0].body | {"model": "mine-chat"}


@pytest.mark.parametrize("answer", [httpx.Response(503), httpx.Response(200, json=[])])
def test_a_list_that_cannot_be_had_is_no_failure(answer: httpx.Response) -> None:
    with client(lambda request: answer) as http:
        assert questions_of_others(http) == []
