"""Models: every operation of the platform for a job inside its Ray cluster."""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypedDict, Unpack

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.client import answers
from modelyard.client.answers import Chunk, Classes, Embeddings, Generation, Ranking
from modelyard.client.calls import Call, Calls, encoded
from modelyard.client.ingress import Ingress, RayIngress
from modelyard.contract.errors import ConfigError, InvalidRequest, RequestError
from modelyard.contract.native import texts_of
from modelyard.contract.operations import Operation
from modelyard.contract.reply import Reply


class Sampling(TypedDict, total=False):
    """The sampling fields of POST /v1/generate."""

    temperature: float
    top_p: float
    top_k: int
    min_p: float
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    stop: list[str]
    seed: int


class Models:
    """Calls the ingress by Ray handle: the same checks, limits, errors and log as over HTTP.

    One per process, from one event loop; SyncModels is for code without a loop.

    key: an API key. max_in_flight: calls under way at once; others wait for a place, and their
    deadline starts when they have it. deadline_s: for one call with its retries; the route's own
    total deadline bounds each attempt. ingress: another way to the ingress, for tests.

    Every method raises a RequestError of modelyard.contract.errors; ConfigError means that the
    client itself is set up wrongly.
    """

    def __init__(
        self,
        key: str,
        *,
        max_in_flight: int = 16,
        deadline_s: float = 120.0,
        retry: RetryPolicy | None = None,
        ingress: Ingress | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        if max_in_flight < 1:
            raise ConfigError(f"max_in_flight is {max_in_flight}: no call could ever be sent")
        self._deadline_s = deadline_s
        self._calls = Calls(
            ingress or RayIngress(),
            key,
            max_in_flight=max_in_flight,
            retry=retry or RetryPolicy(),
            draw=draw,
        )

    async def generate(
        self,
        model: str,
        messages: str | Sequence[Mapping[str, str]],
        *,
        max_output_tokens: int,
        conversation_id: str | None = None,
        deadline_s: float | None = None,
        **sampling: Unpack[Sampling],
    ) -> Generation:
        """One answer. messages: `{role, content}` records, or the text of one user message.

        conversation_id: what keeps a conversation on one version; without it the call is its own.
        """
        body = _native(model, messages, max_output_tokens, conversation_id, sampling)
        return answers.generation(await self._ask(Operation.GENERATE, body, deadline_s))

    async def stream(
        self,
        model: str,
        messages: str | Sequence[Mapping[str, str]],
        *,
        max_output_tokens: int,
        conversation_id: str | None = None,
        deadline_s: float | None = None,
        **sampling: Unpack[Sampling],
    ) -> AsyncGenerator[Chunk]:
        """The answer as it is made; the last chunk has no text and holds the whole in `final`.

        Closing it (`contextlib.aclosing`) stops the model. A stream that fails raises an error
        whose `partial` is the text that had arrived; it is sent again only before the first.
        """
        body = _native(model, messages, max_output_tokens, conversation_id, sampling)
        call = self._call(Operation.GENERATE, body | {"stream": True}, deadline_s)
        parts: list[str] = []
        try:
            async with aclosing(self._calls.ask_stream(call)) as items:
                async for item in items:
                    for text in texts_of(item.data if isinstance(item, Reply) else item):
                        parts.append(text)
                        yield Chunk(text)
                    if isinstance(item, Reply):
                        yield Chunk("", answers.streamed(item, "".join(parts)))
        except RequestError as error:
            error.partial = "".join(parts)
            raise

    async def embed(
        self,
        model: str,
        texts: Iterable[str],
        *,
        dimensions: int | None = None,
        truncate_prompt_tokens: int | None = None,
        deadline_s: float | None = None,
    ) -> Embeddings:
        """One vector a text, in their order.

        truncate_prompt_tokens: cut each text to so many tokens, -1 for the model's limit; without
        it one text that is too long refuses the whole call. So in the two methods below.
        """
        body = {
            "model": model,
            "input": _texts(texts, "input"),
            "dimensions": dimensions,
            "truncate_prompt_tokens": truncate_prompt_tokens,
            "encoding_format": "base64",
        }
        return answers.embeddings(await self._ask(Operation.EMBED, body, deadline_s))

    async def classify(
        self,
        model: str,
        texts: Iterable[str],
        *,
        truncate_prompt_tokens: int | None = None,
        deadline_s: float | None = None,
    ) -> Classes:
        """One label a text, in their order."""
        body = {
            "model": model,
            "input": _texts(texts, "input"),
            "truncate_prompt_tokens": truncate_prompt_tokens,
        }
        return answers.classes(await self._ask(Operation.CLASSIFY, body, deadline_s))

    async def rerank(
        self,
        model: str,
        query: str,
        documents: Iterable[str],
        *,
        top_n: int | None = None,
        truncate_prompt_tokens: int | None = None,
        deadline_s: float | None = None,
    ) -> Ranking:
        """The documents by their relevance for the query; the best `top_n`, or all."""
        body = {
            "model": model,
            "query": query,
            "documents": _texts(documents, "documents"),
            "top_n": top_n,
            "truncate_prompt_tokens": truncate_prompt_tokens,
            "return_documents": False,
        }
        return answers.ranking(await self._ask(Operation.RERANK, body, deadline_s))

    async def _ask(
        self, operation: Operation, body: Mapping[str, Any], deadline_s: float | None
    ) -> Reply:
        return await self._calls.ask(self._call(operation, body, deadline_s))

    def _call(
        self, operation: Operation, body: Mapping[str, Any], deadline_s: float | None
    ) -> Call:
        within_s = self._deadline_s if deadline_s is None else deadline_s
        if not isinstance(within_s, int | float) or not within_s > 0:
            raise InvalidRequest(
                f"deadline_s is {within_s!r}: give a number of seconds above 0", param="deadline_s"
            )
        return Call(operation, encoded(body), within_s)


def _native(
    model: str,
    messages: str | Sequence[Mapping[str, str]],
    max_output_tokens: int,
    conversation_id: str | None,
    sampling: Sampling,
) -> dict[str, Any]:
    return {
        "model": model,
        "messages": _messages(messages),
        "max_output_tokens": max_output_tokens,
        "conversation_id": conversation_id or f"job-{secrets.token_hex(8)}",
    } | dict(sampling)


def _messages(messages: str | Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    try:
        return [dict(message) for message in messages]
    except (TypeError, ValueError) as error:
        raise InvalidRequest(
            "messages is neither a text nor a list of mappings: send role and content of each",
            param="messages",
        ) from error


def _texts(texts: Iterable[str], param: str) -> list[str]:
    """Raises InvalidRequest for one bare text, which would be sent as its letters."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InvalidRequest(
            f"{param} is {type(texts).__name__}: send a list of texts, for one text too",
            param=param,
        )
    return list(texts)
