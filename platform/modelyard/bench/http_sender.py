"""One attempt over HTTP, and what became of it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import aiohttp

from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.refusals import outcome_of_refusal, turned_away
from modelyard.bench.wire.formats import FORMATS, Format, encoded, read_whole
from modelyard.bench.wire.reading import Reading, plain
from modelyard.bench.wire.sse import Event, EventParser
from modelyard.bench.wire.texts import Texts
from modelyard.contract.headers import DEADLINE_MS
from modelyard.workload.plan import Planned

# For the end of the connection's message, after the stream's own end: to use the connection again.
TAIL_S: Final = 1.0


@dataclass(slots=True)
class Stopwatch:
    """The moments of one attempt."""

    started: float
    waited_s: float
    first: float | None = None
    last: float = 0.0
    gaps_s: list[float] = field(default_factory=list)

    def piece(self, at: float) -> None:
        if self.first is None:
            self.first = at
        else:
            self.gaps_s.append(at - self.last)
        self.last = at


class HttpSender:
    """keys: by tenant, "" for a stream without one. connections: at most so many, None: any."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        keys: Mapping[str, str],
        *,
        seed: int,
        now: Callable[[], float],
        timeout_s: float,
        connections: int | None = None,
    ) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._keys = keys
        self._texts = Texts(seed)
        self._now = now
        self._timeout_s = timeout_s
        # Not the connector's limit: this way the wait for a connection can be told apart.
        self._places = asyncio.Semaphore(connections) if connections else contextlib.nullcontext()

    async def send(self, planned: Planned) -> Outcome:
        outcome = await self._send(planned)
        return (
            replace(outcome, message=self._shown(outcome.message)) if outcome.message else outcome
        )

    def _shown(self, message: str) -> str:
        """Some servers repeat a key that they do not know, and a result holds none."""
        for key in self._keys.values():
            message = message.replace(key, "***") if key else message
        return plain(message)

    async def _send(self, planned: Planned) -> Outcome:
        asked = self._now()
        async with self._places:
            watch = Stopwatch(self._now(), self._now() - asked)
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self._attempt(planned, watch)
            except TimeoutError:
                return self._failed(watch, "timeout", f"no end in {self._timeout_s:g} s")
            except aiohttp.ClientConnectorError as error:
                why = errno.errorcode.get(error.errno or 0, "no connection")
                return self._failed(watch, "connect", why, retryable=True)
            except (aiohttp.ClientError, OSError) as error:
                broken = "broken_stream" if watch.first is not None else "disconnected"
                return self._failed(watch, broken, type(error).__name__, retryable=True)
            except ValueError:
                return self._failed(watch, "bad_answer", "no JSON of the route")

    async def _attempt(self, planned: Planned, watch: Stopwatch) -> Outcome:
        wire = FORMATS[planned.stream.route]
        async with self._session.post(
            self._url + wire.path,
            data=encoded(planned, self._texts),
            headers=self._headers(planned),
        ) as response:
            if response.status != 200:
                body = await response.read()
                return outcome_of_refusal(
                    response.status, response.headers, body, watch.started, self._now()
                )
            if response.content_type == "text/event-stream":
                reading, ended = await self._read_stream(wire, response, watch)
            else:
                reading, ended = read_whole(await response.read()), self._now()
        return self._answered(reading, watch, ended)

    async def _read_stream(
        self, wire: Format, response: aiohttp.ClientResponse, watch: Stopwatch
    ) -> tuple[Reading, float]:
        parser, reading = EventParser(), Reading()
        async for chunk in response.content.iter_any():
            at = self._now()
            for event in parser.feed(chunk):
                if _take(wire, event, reading):
                    watch.piece(at)
            if reading.ended or reading.error is not None:
                with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
                    async with asyncio.timeout(TAIL_S):
                        await response.read()
                return reading, at
        return reading, self._now()

    def _answered(self, reading: Reading, watch: Stopwatch, ended: float) -> Outcome:
        if reading.error is not None:
            code, reason = reading.error
            verdict = Verdict.FAILED
            if watch.first is None and turned_away(code):
                verdict = Verdict.REJECTED
            return Outcome(
                verdict,
                watch.started,
                ended,
                code=code or "error",
                reason=reason,
                message=reading.message,
            )
        if not reading.ended:
            return self._failed(watch, "broken_stream", "no terminal event", retryable=True)
        return Outcome(
            Verdict.COMPLETED,
            watch.started,
            ended,
            first=watch.first,
            gaps_s=tuple(watch.gaps_s),
            input_tokens=reading.input_tokens or 0,
            output_tokens=reading.made_tokens(),
            tokens_counted=reading.output_tokens is not None,
            connection_wait_s=watch.waited_s,
        )

    def _failed(
        self, watch: Stopwatch, code: str, reason: str, *, retryable: bool = False
    ) -> Outcome:
        verdict, ended = Verdict.FAILED, self._now()
        return Outcome(verdict, watch.started, ended, code=code, reason=reason, retryable=retryable)

    def _headers(self, planned: Planned) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if key := self._keys.get(planned.stream.tenant or ""):
            headers["Authorization"] = f"Bearer {key}"
        if planned.stream.deadline_ms is not None and planned.stream.route != "generate":
            headers[DEADLINE_MS] = str(planned.stream.deadline_ms)
        return headers


def _take(wire: Format, event: Event, reading: Reading) -> bool:
    """Whether the event held content. Raises ValueError for one of another shape."""
    try:
        content = wire.event(event, reading)
    except (AttributeError, TypeError) as error:  # a peer's JSON may be anything at any depth
        raise ValueError("an event of another shape") from error
    reading.pieces += content
    return content
