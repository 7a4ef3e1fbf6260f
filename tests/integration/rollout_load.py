"""Users of an alias while its rollout goes on: every answer is kept and looked at."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

TIMEOUT_S: Final = 120.0
Ask = Callable[[httpx.Client, str, random.Random], "Asked"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. Times of time.time(). code: of its error, "ok" without one. whole: the answer is
    one that a user can use, to its end."""

    request_id: str
    sent_s: float
    ended_s: float
    status: int
    arm: str
    version: str
    code: str
    whole: bool
    text: str = ""


@dataclass
class Load:
    """The answers so far."""

    answers: list[Asked] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, asked: Asked) -> None:
        with self._lock:
            self.answers.append(asked)

    def since(self, at_s: float) -> list[Asked]:
        """Those sent after a moment."""
        with self._lock:
            return [one for one in self.answers if one.sent_s > at_s]


@contextmanager
def users(platform: Any, key: str, count: int, ask: Ask) -> Iterator[Load]:
    """So many users, each with one question after another, a new conversation each time."""
    load = Load()
    stop = threading.Event()

    def use(seed: int) -> None:
        rng = random.Random(seed)
        with platform.client(key) as client:
            client.timeout = TIMEOUT_S
            while not stop.is_set():
                load.add(ask(client, f"c-{uuid.uuid4().hex}", rng))

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def headers_of(conversation: str) -> dict[str, str]:
    return {"X-Request-Id": f"r-{uuid.uuid4().hex}", "X-Conversation-Id": conversation}


def classified(client: httpx.Client, conversation: str, rng: random.Random) -> Asked:
    """A unary request of a few milliseconds."""
    text = f"where is my order {rng.randrange(10_000)}?"
    return classify(client, conversation, [text])


def classify(client: httpx.Client, conversation: str, texts: list[str]) -> Asked:
    headers, sent_s = headers_of(conversation), time.time()
    body = {"model": "support-intent", "input": texts}
    try:
        answer = client.post("/v1/classify", json=body, headers=headers)
    except httpx.HTTPError as error:
        return _broken(headers, sent_s, error)
    whole = answer.status_code == 200 and len(answer.json()["data"]) == len(texts)
    return _asked(headers, sent_s, answer, "ok" if whole else answer.text[:200], whole=whole)


def chats(questions: list[str], max_tokens: int) -> Ask:
    """Streamed answers, read to their end."""

    def ask(client: httpx.Client, conversation: str, rng: random.Random) -> Asked:
        headers, sent_s = headers_of(conversation), time.time()
        body = {
            "model": "support-assistant",
            "messages": [{"role": "user", "content": rng.choice(questions)}],
            "max_tokens": max_tokens,
            "temperature": 0.7,
            "stream": True,
        }
        try:
            with client.stream(
                "POST", "/v1/chat/completions", json=body, headers=headers
            ) as answer:
                if answer.status_code != 200:
                    answer.read()
                    code = str(answer.json()["error"]["modelyard_code"])
                    return _asked(headers, sent_s, answer, code, whole=False)
                text, code, done = _read(answer)
                return _asked(headers, sent_s, answer, code, whole=done, text=text)
        except httpx.HTTPError as error:
            return _broken(headers, sent_s, error)

    return ask


def _read(answer: httpx.Response) -> tuple[str, str, bool]:
    """Text, code, and whether the stream came to its end with a reason."""
    text, code, finished, done = "", "ok", False, False
    for line in answer.iter_lines():
        if not line.startswith("data: "):
            continue
        if line == "data: [DONE]":
            done = True
            continue
        chunk = json.loads(line.removeprefix("data: "))
        if "error" in chunk:
            return text, str(chunk["error"]["modelyard_code"]), False
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            finished = finished or choice.get("finish_reason") is not None
    return text, code, finished and done


def _asked(
    headers: dict[str, str],
    sent_s: float,
    answer: httpx.Response,
    code: str,
    *,
    whole: bool,
    text: str = "",
) -> Asked:
    return Asked(
        headers["X-Request-Id"],
        sent_s,
        time.time(),
        answer.status_code,
        answer.headers.get("x-rollout-arm", ""),
        answer.headers.get("x-model-version", ""),
        code,
        whole,
        text,
    )


def _broken(headers: dict[str, str], sent_s: float, error: Exception) -> Asked:
    return Asked(headers["X-Request-Id"], sent_s, time.time(), 0, "", "", repr(error), whole=False)
