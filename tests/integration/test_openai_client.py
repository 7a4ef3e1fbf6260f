"""Who may use what, and what is refused, through the real `openai` client."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from modelyard.config.demo import NIGHTLY_KEY

pytestmark = pytest.mark.integration

FRANCE: Any = [{"role": "user", "content": "What is the capital of France?"}]


def chat(client: openai.OpenAI, **options: Any) -> Any:
    completions: Any = client.chat.completions  # its overloads want every option spelled out
    asked = {"model": "support-assistant", "messages": FRANCE, "temperature": 0} | options
    return completions.create(**asked)


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
    openai_client: openai.OpenAI,
    options: dict[str, Any],
    error: type[openai.APIStatusError],
    code: str | None,
    param: str,
) -> None:
    with pytest.raises(error) as caught:
        chat(openai_client, **options)
    assert (caught.value.code, caught.value.param) == (code, param)
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id == caught.value.response.headers["x-request-id"]
    assert caught.value.response.headers["x-should-retry"] == "false"


def test_a_wrong_key_is_an_authentication_error(platform: Any) -> None:
    stranger = openai.OpenAI(base_url=f"{platform.url}/v1", api_key="my_no_key", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        chat(stranger)


def test_a_refused_request_is_sent_once(
    platform: Any, wait_for: Any, openai_client: openai.OpenAI
) -> None:
    """The client would try again twice: the request log shows whether it did."""
    patient = openai_client.with_options(max_retries=2)
    headers = {"X-Request-Id": "sent-once"}
    with pytest.raises(openai.APIStatusError) as caught:
        chat(patient, extra_headers=headers, temperature=-1)
    assert caught.value.status_code == 400
    with pytest.raises(openai.APIStatusError):
        chat(openai_client, extra_headers={"X-Request-Id": "sent-after"}, temperature=-1)
    # Each may be in the log of another ingress.
    wait_for("its line", lambda: platform.log_of("sent-once"))
    wait_for("the line of a later request", lambda: platform.log_of("sent-after"))
    assert len(platform.log_of("sent-once")) == 1
