"""A judge behind a URL: somebody's own service, asked by HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx

from modelyard.ingress.feedback import GOOD
from modelyard.ingress.judge_question import NoVerdict, Question

MAX_REPLY_BYTES: Final = 64 * 1024


class JudgeHook:
    """POST of {messages, answer, rubric}; the reply is {"good": true} or {"score": 0..1}.

    No redirects: what tenants wrote goes where the file says and nowhere else. Without a time limit
    of its own: the caller's bounds all of it.
    """

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    async def is_good(self, url: str, question: Question) -> bool:
        """Raises NoVerdict, for a hook that is away too."""
        body = {
            "messages": question.messages,
            "answer": question.answer,
            "rubric": question.rubric,
        }
        try:
            return _verdict(await self._post(url, json.dumps(body).encode()))
        except httpx.HTTPError as error:
            raise NoVerdict(f"the hook cannot be asked: {type(error).__name__}") from None

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _post(self, url: str, body: bytes) -> bytes:
        if self._client is None:
            # On a thread: reading the certificates of the machine takes 30 ms.
            self._client = await asyncio.to_thread(httpx.AsyncClient, timeout=None)
        headers = {"Content-Type": "application/json"}
        reply = bytearray()
        async with self._client.stream("POST", url, content=body, headers=headers) as answer:
            if answer.status_code != 200:
                raise NoVerdict(f"the hook answered {answer.status_code}")
            async for part in answer.aiter_bytes():
                reply += part
                if len(reply) > MAX_REPLY_BYTES:
                    raise NoVerdict(f"the hook's reply is larger than {MAX_REPLY_BYTES} bytes")
        return bytes(reply)


def _verdict(reply: bytes) -> bool:
    """Strictly: a reply that has to be guessed at is no verdict."""
    try:
        record: Any = json.loads(reply)
    except ValueError:
        raise NoVerdict("the hook's reply is no JSON") from None
    if isinstance(record, dict) and ("good" in record) != ("score" in record):
        good, score = record.get("good"), record.get("score")
        if isinstance(good, bool):
            return good
        if isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1:
            return score >= GOOD
    raise NoVerdict('the hook must reply {"good": true or false} or {"score": 0 to 1}')
