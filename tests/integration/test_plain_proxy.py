"""Ray's own Python proxy works too."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest

from modelyard.config.demo import DEMO_KEY

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FRANCE: Any = [{"role": "user", "content": "What is the capital of France?"}]


def test_every_kind_of_model_answers(plain_platform: Any) -> None:
    done = plain_platform.run("up", "--config", str(plain_platform.config))
    assert done.returncode == 0, done.stderr
    for alias in ("support-assistant", "support-embed", "support-intent", "support-rerank"):
        assert alias in done.stdout


def test_a_stream_arrives_whole(plain_platform: Any) -> None:
    client = openai.OpenAI(base_url=f"{plain_platform.url}/v1", api_key=DEMO_KEY, max_retries=0)
    chunks = list(
        client.chat.completions.create(
            model="support-assistant", messages=FRANCE, temperature=0, stream=True
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == "The capital of France is Paris."


def test_a_caller_that_hangs_up_is_noticed(plain_platform: Any, wait_for: Any) -> None:
    body = {"model": "support-assistant", "messages": FRANCE, "max_tokens": 512, "ignore_eos": True}
    with plain_platform.client() as client, pytest.raises(httpx.ReadTimeout):
        client.post(
            "/v1/chat/completions", json=body, timeout=0.7, headers={"X-Request-Id": "plain-1"}
        )
    [line] = wait_for("the end of plain-1", lambda: plain_platform.log_of("plain-1"))
    assert line["status"] == 499


def test_a_failed_stream_does_not_end_cleanly(plain_platform: Any) -> None:
    body = {"model": "support-assistant", "messages": FRANCE, "max_tokens": 512, "stream": True}
    with (
        plain_platform.client() as client,
        pytest.raises(httpx.RemoteProtocolError),
        client.stream(
            "POST",
            "/v1/chat/completions",
            json=body | {"ignore_eos": True},
            headers={"X-Deadline-Ms": "1500"},
        ) as answer,
    ):
        answer.read()
