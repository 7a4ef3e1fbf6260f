"""An engine that falls silent in the middle of its work: what its callers see meanwhile.

It is stopped by a signal, so that nothing but its silence is unusual.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from modelyard.config.demo import DEMO_KEY
from modelyard.ingress.responses import KEEP_ALIVE_S

pytestmark = pytest.mark.integration

GENERATOR = "smollm2-135m-instruct@1.0.0"
BODY = {
    "model": "support-assistant",
    "messages": [{"role": "user", "content": "Tell me a very long story about a dog."}],
    "max_tokens": 400,
    "ignore_eos": True,
    "stream": True,
}
STREAM_ONCE = Path(__file__).parent / "clients" / "stream_once.py"
OPENAI_2 = Path(__file__).parents[2] / ".venv-clients" / "bin" / "python"


def engine_of(platform: Any) -> psutil.Process:
    """The engine's process: the largest child of its replica."""
    children = psutil.Process(platform.replica(GENERATOR).pid).children(recursive=True)
    return max(children, key=lambda child: child.memory_info().rss)


@contextmanager
def paused(engine: psutil.Process) -> Iterator[None]:
    engine.suspend()
    try:
        yield
    finally:
        engine.resume()


@contextmanager
def chat(platform: Any, **headers: str) -> Iterator[httpx.Response]:
    with (
        platform.client(headers=headers) as client,
        client.stream("POST", "/v1/chat/completions", json=BODY) as answer,
    ):
        yield answer


def test_a_silent_stream_carries_comments_and_then_goes_on(platform: Any) -> None:
    """A comment and a blank line after it would be an empty event for the openai client."""
    engine = engine_of(platform)
    command = ["curl", "-sN", "-m", "60", f"{platform.url}/v1/chat/completions"]
    command += ["-H", f"Authorization: Bearer {DEMO_KEY}", "-H", "Content-Type: application/json"]
    command += ["-d", json.dumps(BODY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        pipe = running.stdout.fileno()
        text = os.read(pipe, 65536)
        with paused(engine):
            while b": keep-alive" not in text:
                piece = os.read(pipe, 65536)
                assert piece, text
                text += piece
        text += b"".join(iter(lambda: os.read(pipe, 65536), b""))
    assert running.returncode == 0
    assert text.endswith(b"data: [DONE]\n\n")
    assert not re.search(rb"(?m)^:.*\n\n", text), "a blank line after a comment"
    assert [line for line in text.splitlines() if line and line[:6] != b"data: "] == [
        b": keep-alive"
    ] * text.count(b": keep-alive")


@pytest.mark.parametrize(
    "python", [OPENAI_2, Path(sys.executable)], ids=["openai 2", "the server's openai"]
)
def test_the_openai_client_reads_on_after_a_silence(platform: Any, python: Path) -> None:
    if not python.exists():
        pytest.fail(f"there is no {python}: run `requirements/side clients`")
    engine = engine_of(platform)
    env = {"MODELYARD_URL": platform.url, "MODELYARD_API_KEY": DEMO_KEY, "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        [str(python), str(STREAM_ONCE)], env=env, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline(), "the script wrote nothing: see its error above"
        with paused(engine):
            time.sleep(KEEP_ALIVE_S + 2)
        *_, last = running.stdout.read().splitlines()
    assert running.returncode == 0
    assert json.loads(last) == {"finish_reason": "length"}


def test_a_stream_that_stays_silent_is_broken_off_and_its_slot_is_free(
    platform: Any, wait_for: Any
) -> None:
    """The idle deadline: 15 s in the configuration."""

    engine = engine_of(platform)

    def pause_after_the_first_line() -> None:
        with chat(platform, **{"X-Request-Id": "silent-1"}) as answer:
            lines = answer.iter_lines()
            next(lines)
            with paused(engine):
                for _ in lines:
                    pass

    with pytest.raises(httpx.RemoteProtocolError):
        pause_after_the_first_line()
    [line] = wait_for("its log line", lambda: platform.log_of("silent-1"))
    assert (line["code"], line["reason"]) == ("deadline_exceeded", "idle")
    wait_for("an idle replica", lambda: platform.replica(GENERATOR).ongoing == 0)


def test_a_failure_before_the_first_token_is_a_status_and_no_stream(
    platform: Any, wait_for: Any
) -> None:
    """Not a 200 with an error inside: that is too late for a client that would try again."""
    headers = {"X-Request-Id": "silent-2", "X-Deadline-Ms": "1500"}
    with paused(engine_of(platform)), chat(platform, **headers) as answer:
        answer.read()
    assert answer.status_code == 504
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]["modelyard_code"] == "deadline_exceeded"
    wait_for("an idle replica", lambda: platform.replica(GENERATOR).ongoing == 0)


def test_a_caller_that_leaves_a_silent_engine_is_forgotten(platform: Any, wait_for: Any) -> None:
    """The engine hears of it when it works again; nothing waits for that."""
    with paused(engine_of(platform)):
        with pytest.raises(httpx.ReadTimeout), platform.client() as client:
            client.post(
                "/v1/chat/completions",
                json=BODY | {"stream": False},
                timeout=1.0,
                headers={"X-Request-Id": "silent-3"},
            )
        [line] = wait_for("its log line", lambda: platform.log_of("silent-3"))
    assert line["status"] == 499
    wait_for("an idle replica", lambda: platform.replica(GENERATOR).ongoing == 0)
