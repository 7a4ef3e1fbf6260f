"""ASGI responses: an answer, an error, and a stream that ends as it should or visibly breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from modelyard.contract.envelope import Item
from modelyard.contract.errors import RequestError
from modelyard.contract.headers import (
    CONVERSATION_PIN,
    DEGRADED,
    IGNORED_FIELDS,
    MODEL_VERSION,
    PIN_IGNORED,
    REQUEST_ID,
    ROLLOUT_ARM,
    ROUTE,
    listed,
)
from modelyard.contract.operations import Operation
from modelyard.contract.render_error import body_for, headers_for, sse_error
from modelyard.ingress.charge import CLIENT_GONE
from modelyard.ingress.disconnect import cancelled_when_gone
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.lazy_timeout import LazyTimeout

DONE: Final = b"data: [DONE]\n\n"
# Their streams end with it; the others by an event of their own, which the shell sends.
ENDED_BY_DONE: Final = frozenset((Operation.CHAT, Operation.COMPLETIONS))
# One newline, not two: a blank line after a comment makes the openai client read an empty event.
KEEP_ALIVE: Final = b": keep-alive\n"
KEEP_ALIVE_S: Final = 5.0
LAST_WORDS_S: Final = 5.0  # to take the error of a stream whose total deadline has passed


class StreamBroken(Exception):
    """Raised out of the ASGI app so that the server drops the connection instead of ending it.

    OpenAI's clients read a clean end as success, so a failed stream must not end cleanly.
    """


def json_response(
    record: Any, request_id: str, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    return _json(json.dumps(record, ensure_ascii=False).encode(), request_id, status, headers)


def error_response(error: RequestError, request_id: str, operation: Operation | None) -> Response:
    body = body_for(error, request_id, operation)
    return _json(body, request_id, error.status, headers_for(error))


def answer_response(item: Item, prepared: Prepared) -> Response:
    request_id = prepared.record.request_id
    return _json(item.data, request_id, 200, answer_headers(prepared))


def answer_headers(prepared: Prepared) -> dict[str, str]:
    """What every answered request carries: who answered, what was not listened to, and what was
    made smaller."""
    headers = {
        MODEL_VERSION: prepared.target.version,
        ROLLOUT_ARM: prepared.target.arm,
        "Cache-Control": "no-store",
    }
    headers |= prepared.rate_limits
    if ignored := listed(prepared.work.ignored):
        headers[IGNORED_FIELDS] = ignored
    if prepared.record.degraded:
        headers[DEGRADED] = prepared.record.degraded
    if prepared.pin:
        headers[CONVERSATION_PIN] = prepared.pin
    if prepared.target.pin_ignored:
        headers[PIN_IGNORED] = prepared.target.pin_ignored
    if prepared.trail is not None:
        headers[ROUTE] = prepared.trail.header()
    return headers


def _json(
    body: bytes, request_id: str, status: int, headers: dict[str, str] | None = None
) -> Response:
    response = Response(body, status, media_type="application/json")
    response.headers.update((headers or {}) | {REQUEST_ID: request_id})
    return response


class StreamResponse(Response):
    """Server-sent events from the pipeline's items.

    The status waits for the first item, at most `early_status_s`: until then a failure is an
    ordinary HTTP error. Owns the items from the first to the last, so whatever ends the response
    (a client that leaves cancels this task) also ends the replica's work.
    """

    def __init__(self, pipeline: Pipeline, prepared: Prepared, operation: Operation) -> None:
        super().__init__()
        self._pipeline = pipeline
        self._prepared = prepared
        self._operation = operation
        self._sending = asyncio.Lock()
        self._begun = asyncio.Event()
        self._started = False
        self._ended = False
        self._sent_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        self._send_timeout = LazyTimeout()
        ticker = asyncio.create_task(self._keep_alive())
        ticker.add_done_callback(_retrieve)
        try:
            async with (
                cancelled_when_gone(receive),
                aclosing(self._pipeline.stream(self._prepared)) as items,
            ):
                await self._relay(items)
        except RequestError as error:
            # Not in the middle of the status, or it would be lost and the error sent without one.
            async with self._sending:
                ticker.cancel()
            if not self._started:
                response = error_response(error, self._prepared.record.request_id, self._operation)
                await response(scope, receive, send)
                return
            await self._break(error)
        finally:
            ticker.cancel()
            self._send_timeout.close()

    async def _relay(self, items: AsyncGenerator[Item]) -> None:
        end = DONE if self._operation in ENDED_BY_DONE else b""
        async for item in items:
            last = item.final is not None
            data = item.data + end if last else item.data
            if data or last:
                await self._write(data, more=not last)

    async def _break(self, error: RequestError) -> None:
        """End a stream that has begun: native by its error event, OpenAI's by dropping the line."""
        native = self._operation is Operation.GENERATE
        record = self._prepared.record
        partial = record.output_tokens > 0
        data = sse_error(error, record.request_id, self._operation, partial=partial)
        await self._write(data, more=not native)
        if not native:
            raise StreamBroken(f"stream {record.request_id} failed: {error.code}") from error

    async def _keep_alive(self) -> None:
        """Send the status when the first item is slow, and a comment when the line is silent."""
        now, prepared = self._pipeline.now, self._prepared
        early_s = prepared.deadlines.early_status_s
        if early_s < min(prepared.deadlines.first_token_s, prepared.deadlines.total_s):
            await asyncio.sleep(early_s - (now() - prepared.started))
            await self._write(b"" if self._started else KEEP_ALIVE, more=True)
        # Otherwise a first item that is too late is a plain 504: with both deadlines at ten seconds
        # it would be chance which of the two a caller sees.
        await self._begun.wait()
        while True:
            silent_s = now() - self._sent_at
            if silent_s >= KEEP_ALIVE_S:
                await self._write(KEEP_ALIVE, more=True)
                silent_s = 0.0
            await asyncio.sleep(KEEP_ALIVE_S - silent_s)

    async def _write(self, data: bytes, *, more: bool) -> None:
        async with self._sending:
            if self._ended:
                return  # a keep-alive that waited while a slow client took the last item
            if not self._started:
                self._started = self._prepared.status_sent = True
                self._begun.set()
                await self._send_in_time(self._start())
            self._ended = not more
            if data or not more:
                self._sent_at = self._pipeline.now()
                message = {"type": "http.response.body", "body": data, "more_body": more}
                await self._send_in_time(message)

    async def _send_in_time(self, message: dict[str, Any]) -> None:
        """Send, unless the client does not read: it must not hold a sequence slot for ever."""
        prepared = self._prepared
        left_s = prepared.started + prepared.deadlines.total_s - self._pipeline.now()
        try:
            with self._send_timeout.within(max(left_s, LAST_WORDS_S)):
                await self._send(message)
        except TimeoutError as error:
            self._pipeline.books.settle(prepared, CLIENT_GONE, "cancelled", "slow_client")
            raise StreamBroken(f"stream {prepared.record.request_id}: nobody reads it") from error

    def _start(self) -> dict[str, Any]:
        headers = answer_headers(self._prepared) | {
            REQUEST_ID: self._prepared.record.request_id,
            "Content-Type": "text/event-stream; charset=utf-8",
            "X-Accel-Buffering": "no",
        }
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        return {"type": "http.response.start", "status": 200, "headers": raw}


def _retrieve(ticker: asyncio.Task[None]) -> None:
    """A ticker that could not send has met a client that left, which ends the stream elsewhere."""
    if not ticker.cancelled():
        ticker.exception()
