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

    No redirects, and nothing of the environment (a proxy, a .netrc): what tenants wrote goes where
    the file says and nowhere else. Without a time limit of its own: the caller's bounds all of it.
    """

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._making = asyncio.Lock()  # two workers ask at once, and each would make one

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
        """Close its connections. Harmless when there are none; asked again, it opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, url: str, body: bytes) -> bytes:
        client = await self._made()
        headers = {"Content-Type": "application/json"}
        reply = bytearray()
        async with client.stream("POST", url, content=body, headers=headers) as answer:
            if answer.status_code != 200:
                raise NoVerdict(f"the hook answered {answer.status_code}")
            async for part in answer.aiter_bytes():
                reply += part
                if len(reply) > MAX_REPLY_BYTES:
                    raise NoVerdict(f"the hook's reply is larger than {MAX_REPLY_BYTES} bytes")
        return bytes(reply)

    async def _made(self) -> httpx.AsyncClient:
        async with self._making:
            if self._client is None:
                # On a thread: reading certificates takes 30 ms.
                self._client = await asyncio.to_thread(_client)
            return self._client


def _client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=None, trust_env=False, follow_redirects=False)


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
