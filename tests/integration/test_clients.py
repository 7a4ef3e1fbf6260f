"""The clients that applications use, each in a process of `.venv-clients`, as in an application.

Its packages cannot live beside the server's (LlamaIndex needs openai 2, vLLM brings openai 3), and
what a client does without Ray or modelyard near it is what a user gets. Each script of `clients/`
runs once; a test reads what one of its checks saw.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from modelyard.config.demo import DEMO_KEY

pytestmark = pytest.mark.integration

PYTHON = Path(__file__).parents[2] / ".venv-clients" / "bin" / "python"
SCRIPTS = Path(__file__).parent / "clients"

PARIS = "The capital of France is Paris."
REFUNDS = "Refunds for duplicate charges are paid within five working days."
GENERATOR = "smollm2-135m-instruct@1.0.0"
CTX_LENGTH = "check_embedding_ctx_length=False"


@dataclass(frozen=True)
class Seen:
    """What the checks of one script saw, by their names."""

    lines: dict[str, dict[str, Any]]
    stderr: str

    def __getitem__(self, check: str) -> Any:
        assert check in self.lines, f"{check} did not run:\n{self.stderr[-3000:]}"
        line = self.lines[check]
        assert "saw" in line, f"{check} raised {line['raised']}\n{self.stderr[-3000:]}"
        return line["saw"]


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the clients' own Python, with nothing of this process's environment."""
    if not PYTHON.exists():
        pytest.fail(f"there is no {PYTHON}: run `requirements/side clients`")
    return subprocess.run(
        [str(PYTHON), *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"} | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def run_checks(platform: Any, script: str) -> Seen:
    done = run(
        str(SCRIPTS / script),
        MODELYARD_URL=platform.url,
        MODELYARD_API_KEY=DEMO_KEY,
        HOME=str(platform.home),
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return Seen({line["check"]: line for line in lines}, done.stderr)


@pytest.fixture(scope="module")
def openai2(platform: Any) -> Seen:
    return run_checks(platform, "with_openai.py")


@pytest.fixture(scope="module")
def langchain(platform: Any) -> Seen:
    return run_checks(platform, "with_langchain.py")


@pytest.fixture(scope="module")
def llama_index(platform: Any) -> Seen:
    return run_checks(platform, "with_llama_index.py")


@pytest.fixture(scope="module")
def cohere(platform: Any) -> Seen:
    return run_checks(platform, "with_cohere.py")


def assert_stopped(platform: Any, wait_for: Any, request_id: str) -> None:
    """A stream that its caller closed is settled as such, and holds no slot."""
    [line] = wait_for(f"the end of {request_id}", lambda: platform.log_of(request_id))
    assert (line["status"], line["code"], line["reason"]) == (499, "cancelled", "client_gone")
    assert 0 < line["output_tokens"] < 512
    wait_for("an idle replica", lambda: platform.replica(GENERATOR).ongoing == 0)


def test_the_clients_environment_is_an_applications() -> None:
    """It would prove little if it could import what only the server has."""
    code = "import importlib.util as u; print([bool(u.find_spec(n)) for n in ('ray', 'modelyard')])"
    assert run("-c", code).stdout.strip() == "[False, False]"
    assert run("-c", "import openai; print(openai.__version__)").stdout.startswith("2.")


# ---- openai 2


def test_openai2_a_chat(openai2: Seen) -> None:
    answer = openai2["chat"]
    assert answer["choices"][0]["message"]["content"] == PARIS
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["model"] == "support-assistant"
    assert answer["system_fingerprint"].startswith(f"{GENERATOR}+")
    assert answer["usage"]["completion_tokens"] > 0


def test_openai2_a_stream_has_one_id_one_end_and_no_usage_unless_asked(openai2: Seen) -> None:
    stream = openai2["chat_stream"]
    assert stream["text"] == PARIS
    assert stream["chunks"] > 4
    assert (stream["ids"], stream["usages"], stream["finish_reasons"]) == (1, 0, ["stop"])


def test_openai2_a_stream_ends_with_its_usage_when_asked(openai2: Seen) -> None:
    last = openai2["chat_stream_with_usage"]
    assert last["choices"] == 0
    assert last["usage"]["completion_tokens"] == openai2["chat"]["usage"]["completion_tokens"]


def test_openai2_several_requests_at_once_on_one_async_client(openai2: Seen) -> None:
    assert openai2["chat_async"] == [PARIS] * 4


def test_openai2_the_raw_response_names_who_answered(openai2: Seen) -> None:
    raw = openai2["raw_response"]
    assert raw["headers"]["x-model-version"] == GENERATOR
    assert raw["headers"]["x-rollout-arm"] == "stable"
    assert raw["request_id"] == "openai2-raw"
    assert raw["id"].startswith("chatcmpl-")


def test_openai2_the_lines_of_a_streaming_response(openai2: Seen) -> None:
    lines = openai2["streaming_response"]
    assert lines["media"].startswith("text/event-stream")
    assert lines["first"].startswith("data: {")
    assert lines["last"] == "data: [DONE]"


def test_openai2_parses_an_answer_into_a_pydantic_model(openai2: Seen) -> None:
    assert openai2["parse"]["city"] == "Paris"
    streamed = openai2["parse_a_stream"]
    assert streamed["parsed"] == openai2["parse"]
    assert streamed["events"] == ["chunk", "content.delta", "content.done"]


def test_openai2_parses_the_arguments_of_a_forced_tool(openai2: Seen) -> None:
    assert openai2["parse_a_tool_call"]["name"] == "FindOrder"


def test_openai2_completions(openai2: Seen) -> None:
    both = openai2["completions"]
    assert both["whole"] == both["stream"]
    assert both["whole"].startswith(" Paris")


def test_openai2_embeddings_come_as_base64_by_default_and_are_the_same(openai2: Seen) -> None:
    seen = openai2["embeddings"]
    assert seen["dimensions"] == [384, 384]
    assert seen["largest_difference"] < 1e-6
    assert seen["prompt_tokens"] > 0


def test_openai2_lists_the_models(openai2: Seen) -> None:
    assert openai2["models"] == [
        "support-assistant",
        "support-embed",
        "support-intent",
        "support-rerank",
    ]


@pytest.mark.parametrize(
    ("check", "error", "status", "code", "param"),
    [
        ("wrong_key", "AuthenticationError", 401, "invalid_api_key", None),
        ("unknown_model", "NotFoundError", 404, "model_not_found", "model"),
        ("wrong_field", "BadRequestError", 400, None, "temperature"),
    ],
)
def test_openai2_raises_its_own_error_and_sends_nothing_again(
    openai2: Seen, check: str, error: str, status: int, code: str | None, param: str | None
) -> None:
    seen = openai2[f"error_of_a{'n' if check[0] == 'u' else ''}_{check}"]
    assert (seen["type"], seen["status"]) == (error, status)
    assert (seen["code"], seen["param"]) == (code, param)
    assert seen["request_id"]
    assert seen["sent"] == 1


def test_openai2_retries_what_is_worth_it_and_only_that(openai2: Seen) -> None:
    """Both are 504, which the client would send three times by itself: it obeys x-should-retry."""
    worthless, worthwhile = (openai2[f"error_that_is_{kind}worth_a_retry"] for kind in ("not_", ""))
    assert (worthless["status"], worthless["reason"], worthless["sent"]) == (504, "total", 1)
    assert (worthwhile["status"], worthwhile["reason"], worthwhile["sent"]) == (504, "expired", 3)


def test_openai2_the_read_timeout_that_it_tells_is_the_deadline(
    openai2: Seen, platform: Any, wait_for: Any
) -> None:
    seen = openai2["read_timeout"]
    assert (seen["type"], seen["reason"]) == ("InternalServerError", "total")
    assert openai2["timeout"] in ("APITimeoutError", "InternalServerError")
    [line] = wait_for("the end", lambda: platform.log_of("openai2-timeout"))
    assert line["code"] in ("deadline_exceeded", "cancelled")


def test_openai2_a_stream_that_fails_raises_after_its_text(openai2: Seen) -> None:
    seen = openai2["stream_that_fails"]
    assert seen["type"] == "APIError"
    assert seen["code"] == "deadline_exceeded"
    assert "2.5 s" in seen["text"]


@pytest.mark.parametrize("how", ["closed", "cancelled"])
def test_openai2_a_stream_left_early_holds_no_slot(
    openai2: Seen, platform: Any, wait_for: Any, how: str
) -> None:
    assert openai2["stream_closed_early" if how == "closed" else "task_cancelled"] > 0
    assert_stopped(platform, wait_for, f"openai2-{how}")


def test_openai2_responses_whole_streamed_and_parsed(openai2: Seen) -> None:
    answer, stream = openai2["responses"], openai2["responses_stream"]
    assert (answer["text"], answer["status"]) == (PARIS, "completed")
    assert answer["model"] == "support-assistant"
    assert answer["output_tokens"] > 0
    assert stream["text"] == PARIS
    assert (stream["first"], stream["last"]) == ("response.created", "response.completed")
    assert stream["numbers"] == sorted(set(stream["numbers"]))
    assert openai2["responses_parse"]["city"] == "Paris"


def test_openai2_responses_keep_nothing_and_say_so(openai2: Seen) -> None:
    assert openai2["responses_that_would_be_kept"]["param"] == "previous_response_id"


# ---- LangChain


def test_langchain_invoke_tells_usage_and_the_version(langchain: Seen) -> None:
    answer = langchain["invoke"]
    assert answer["text"]
    assert answer["usage"]["output_tokens"] > 0
    assert answer["metadata"]["model_name"] == "support-assistant"
    assert answer["metadata"]["system_fingerprint"].startswith(f"{GENERATOR}+")


def test_langchain_stream_says_the_same_with_one_usage(langchain: Seen) -> None:
    seen = langchain["stream"]
    assert seen["same"]
    assert seen["pieces"] > 4
    [usage] = seen["usages"]
    assert usage["output_tokens"] > 0
    assert langchain["stream_without_usage"]["text"] == PARIS
    assert langchain["astream"] == PARIS


def test_langchain_batch_and_a_streamed_chain(langchain: Seen) -> None:
    assert langchain["batch"] == [PARIS] * 6
    assert langchain["chain"] == PARIS


def test_langchain_calls_a_bound_tool_and_goes_on_with_its_result(langchain: Seen) -> None:
    whole, streamed = langchain["tools"], langchain["streamed_tool_call"]
    assert whole["name"] == streamed["name"] == "find_order"
    assert whole["arguments"]["order"] in ("first", "last")
    assert streamed["arguments"] == whole["arguments"]
    assert whole["answered_after"]


def test_langchain_structured_output_fits_the_schema_by_either_method(langchain: Seen) -> None:
    seen = langchain["structured_output"]
    assert seen["json_schema"] == {"city": "Paris"}
    assert seen["function_calling"]["city"] in ("Paris", "London")


def test_langchain_the_completion_model(langchain: Seen) -> None:
    assert langchain["completion_model"].startswith(" Paris")


def test_langchain_speaks_the_responses_api(langchain: Seen) -> None:
    assert langchain["responses_api"] == {"text": PARIS, "streamed": PARIS}


def test_langchain_stop_and_n(langchain: Seen) -> None:
    assert langchain["stop_and_several_choices"] == {
        "stopped": "The capital of France",
        "choices": 2,
    }


def test_langchain_a_stream_that_is_left_holds_no_slot(
    langchain: Seen, platform: Any, wait_for: Any
) -> None:
    assert langchain["cancelled_stream"] == 5
    assert_stopped(platform, wait_for, "langchain-closed")


def test_langchain_raises_openais_error(langchain: Seen) -> None:
    seen = langchain["error_of_an_unknown_model"]
    assert seen["code"] == "model_not_found"
    assert "GET /v1/models" in seen["text"]


@pytest.mark.parametrize("words", ["rare", "common"])
def test_langchain_embeddings_in_openais_tokens_are_refused_with_the_cure(
    langchain: Seen, words: str
) -> None:
    """As other words of our vocabulary they would make vectors that mean nothing."""
    assert CTX_LENGTH in str(langchain["embeddings_by_default"][words])


def test_langchain_embeddings_of_text(langchain: Seen) -> None:
    seen = langchain["embeddings"]
    assert seen["dimensions"] == 384
    assert seen["same"]
    assert seen["near"] > seen["far"] + 0.2


def test_langchain_reranks_with_null_fields_and_a_top_n_above_the_count(langchain: Seen) -> None:
    ranked = langchain["rerank"]
    assert [row for row, _ in ranked] == [1, 0]
    assert 1 >= ranked[0][1] > ranked[1][1] >= 0
    assert langchain["rerank_of_records"] == [1, 0]


def test_langchain_a_rerank_error_is_coheres(langchain: Seen) -> None:
    seen = langchain["rerank_error"]
    assert seen["status"] == 404
    assert "GET /v1/models" in seen["body"]["detail"]


# ---- LlamaIndex


def test_llama_index_chats_whole_streamed_and_async(llama_index: Seen) -> None:
    assert llama_index["chat"] == {"role": "assistant", "text": PARIS}
    assert llama_index["stream_chat"]["text"] == PARIS
    assert llama_index["stream_chat"]["pieces"] > 4
    assert llama_index["achat"] == [PARIS, PARIS]


def test_llama_index_completes_by_chat_or_by_completions(llama_index: Seen) -> None:
    assert llama_index["complete_of_a_chat_model"] == PARIS
    seen = llama_index["complete"]
    assert seen["text"].startswith(" Paris")
    assert seen["streamed"] == seen["text"]
    assert llama_index["chat_of_a_completion_model"]


def test_llama_index_calls_a_tool(llama_index: Seen) -> None:
    assert llama_index["tool_call"] == ["find_order"]


def test_llama_index_a_stream_that_is_left_holds_no_slot(
    llama_index: Seen, platform: Any, wait_for: Any
) -> None:
    assert llama_index["stream_closed_early"] == 5
    assert_stopped(platform, wait_for, "llamaindex-closed")


def test_llama_index_raises_openais_error(llama_index: Seen) -> None:
    assert llama_index["error_of_an_unknown_model"]["code"] == "model_not_found"


def test_llama_index_embeds(llama_index: Seen) -> None:
    seen = llama_index["embeddings"]
    assert seen["dimensions"] == 384
    assert seen["same"]
    assert seen["near"] > seen["far"] + 0.2


def test_llama_index_reranks_as_jina(llama_index: Seen) -> None:
    ranked = llama_index["rerank"]
    assert ranked[0][0] == REFUNDS
    assert ranked[0][1] > ranked[1][1]


def test_llama_index_a_rerank_error_says_what_is_wrong(llama_index: Seen) -> None:
    seen = llama_index["rerank_error"]
    assert "GET /v1/models" in seen["model"]
    assert "key" in seen["key"]


def test_llama_index_answers_a_question_over_documents(llama_index: Seen) -> None:
    assert llama_index["question_over_documents"] == {"source": REFUNDS, "answered": True}


# ---- cohere


def test_cohere_reranks(cohere: Seen) -> None:
    seen = cohere["rerank"]
    assert seen["order"] == cohere["rerank_async"] == [1, 0]
    assert 1 >= seen["scores"][0] > seen["scores"][1] >= 0
    assert seen["id"]
    assert cohere["rerank_cut_to_the_best"] == [1]


def test_cohere_the_first_api_gives_the_documents_back(cohere: Seen) -> None:
    assert cohere["rerank_of_the_first_api"][0] == [1, REFUNDS]


@pytest.mark.parametrize(
    ("check", "status", "word"),
    [
        ("error_of_a_wrong_key", 401, "key"),
        ("error_of_an_unknown_model", 404, "GET /v1/models"),
        ("error_of_no_documents", 400, "documents"),
    ],
)
def test_cohere_raises_its_own_error_with_the_reason(
    cohere: Seen, check: str, status: int, word: str
) -> None:
    seen = cohere[check]
    assert seen["status"] == status
    assert word in seen["body"]["detail"]
