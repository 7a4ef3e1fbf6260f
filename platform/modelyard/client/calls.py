"""Sending a request until it is answered: places, deadline, retries, retry budget."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.client.ingress import Ingress
from modelyard.contract.errors import (
    DeadlineExceeded,
    InvalidRequest,
    ReplicaFailed,
    RequestError,
    from_failure,
)
from modelyard.contract.headers import DEADLINE_MS, REQUEST_ID
from modelyard.contract.operations import Operation
from modelyard.contract.reply import Failure, Reply

# The ingress keeps the same deadline and knows more: its account should be the one that is told.
GRACE_S: Final = 0.5


@dataclass(slots=True)
class Call:
    """One request of a job, through all its attempts. `deadline` is on the loop's clock."""

    operation: Operation
    body: bytes
    deadline_s: float
    request_id: str = field(default_factory=lambda: f"job_{secrets.token_hex(12)}")
    deadline: float = 0.0
    attempt: int = 0

    def begin(self) -> None:
        self.deadline = _now() + self.deadline_s

    def left_s(self) -> float:
        return self.deadline - _now()

    def headers(self) -> dict[str, str]:
        left_ms = max(1, int(self.left_s() * 1000))
        return {REQUEST_ID: self.request_id, DEADLINE_MS: str(left_ms)}


class Calls:
    """Everything a client does around a call to the ingress."""

    def __init__(
        self,
        ingress: Ingress,
        key: str,
        *,
        max_in_flight: int,
        retry: RetryPolicy,
        draw: Callable[[], float],
    ) -> None:
        self._ingress = ingress
        self._key = key
        self._places = asyncio.Semaphore(max_in_flight)
        self._retry = retry
        self._budget = retry.budget(max_in_flight)
        self._draw = draw

    async def ask(self, call: Call) -> Reply:
        """One answer. Raises RequestError."""
        async with self._place():
            self._begin(call)
            while True:
                try:
                    async with _in_time(call):
                        call.attempt += 1
                        answer = await self._ingress.ask(
                            self._key, call.operation, call.body, call.headers()
                        )
                    return _taken(answer)
                except RequestError as error:
                    await self._pause(call, error)

    async def ask_stream(self, call: Call) -> AsyncGenerator[bytes | Reply]:
        """A stream's bytes; its Reply comes last. Raises RequestError. Closing it cancels."""
        async with self._place():
            self._begin(call)
            begun = False
            while True:
                try:
                    async with aclosing(self._items(call)) as items:
                        async for item in items:
                            begun = True
                            yield item
                    return
                except RequestError as error:
                    await self._pause(call, error, begun=begun)

    async def _items(self, call: Call) -> AsyncGenerator[bytes | Reply]:
        call.attempt += 1
        async with aclosing(
            self._ingress.ask_stream(self._key, call.operation, call.body, call.headers())
        ) as items:
            while True:
                async with _in_time(call):
                    item = await anext(items, None)
                if isinstance(item, bytes):
                    yield item
                    continue
                if item is None:
                    raise ReplicaFailed("the ingress ended its stream early", reason="incomplete")
                yield _taken(item)
                return

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Held while a retry waits, and for a while after a refusal that nothing can be done about:
        a refused job must not send its next rows meanwhile."""
        await self._places.acquire()
        rest_s = 0.0
        try:
            yield
        except RequestError as error:
            rest_s = self._retry.rest_s(error)
            raise
        finally:
            if rest_s:  # the caller has its error at once: only the place rests
                asyncio.get_running_loop().call_later(rest_s, self._places.release)
            else:
                self._places.release()

    def _begin(self, call: Call) -> None:
        call.begin()
        self._budget.request()

    async def _pause(self, call: Call, error: RequestError, *, begun: bool = False) -> None:
        """Wait until the call may be sent again; raises `error` when it may not.

        begun: the caller has had a part of the answer, which cannot be taken back.
        """
        pause_s = self._retry.pause_s(error, call.attempt, call.left_s(), self._draw())
        if begun or pause_s is None or not self._budget.retry(error):
            # With what an operator needs to find the request in the log.
            error.add_note(f"request id {call.request_id}, attempt {call.attempt}")
            raise error
        await asyncio.sleep(pause_s)


@asynccontextmanager
async def _in_time(call: Call) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(call.left_s() + GRACE_S):
            yield
    except TimeoutError as error:
        raise DeadlineExceeded(
            f"the deadline of {call.deadline_s:g} s passed without an answer from the ingress",
            reason="total",
        ) from error


def _taken(answer: Reply | Failure) -> Reply:
    if isinstance(answer, Failure):
        raise from_failure(answer)
    return answer


def encoded(body: Mapping[str, Any]) -> bytes:
    """The body as JSON. Raises InvalidRequest for a value that JSON does not have."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:  # bytes or numpy; half a surrogate pair or NaN
        raise InvalidRequest(
            f"the request holds a value that JSON cannot hold: send str, int and float ({error})"
        ) from error


def _now() -> float:
    return asyncio.get_running_loop().time()
