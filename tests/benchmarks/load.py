"""The load: a closed loop of keep-alive HTTP/1.1 connections, in a process of its own.

Raw sockets, because an HTTP client library would use more CPU than what is measured, and leave too
little of two cores for it. The client reports its own CPU, so that a table can show that it waits.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Final, Self, cast

import uvloop

GRACE_S: Final = 120.0  # for the last answers of a window, before a hung server fails the run


@dataclass(frozen=True, slots=True)
class Job:
    """Requests to one path for `seconds`. Bodies and header sets are drawn at random, seeded.

    With `requests` set, the window lasts until that many were begun, and not for `seconds`.
    """

    port: int
    path: str
    bodies: Sequence[str]
    headers: Sequence[Mapping[str, str]] = ({},)
    clients: int = 1
    seconds: float = 1.0
    requests: int | None = None
    seed: int = 0


@dataclass(slots=True)
class Load:
    """What a job saw. Times in ms; `gaps_ms` are those between the events of a stream."""

    requests: int
    seconds: float
    client_cpu_s: float
    p50_ms: float
    first_p50_ms: float
    gap_p50_ms: float
    gap_p99_ms: float

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds


@dataclass(slots=True)
class Window:
    """The state of a running job, shared by its connections."""

    job: Job
    draw: random.Random
    messages: list[bytes]
    over_at: float
    left: int
    latencies_ms: list[float] = field(default_factory=list)
    firsts_ms: list[float] = field(default_factory=list)
    gaps_ms: list[float] = field(default_factory=list)

    def next_message(self, now: float) -> bytes | None:
        if self.left == 0 or now >= self.over_at:
            return None
        self.left -= 1
        return self.draw.choice(self.messages)


class Connection(asyncio.Protocol):
    """One client: a request, its whole answer, the next request."""

    def __init__(self, window: Window, done: asyncio.Future[None]) -> None:
        self._window = window
        self._done = done
        self._received = bytearray()
        self._last = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's derives from none of them
        self._send()

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        if events := data.count(b"data: "):
            self._events(events, now)
        self._received += data
        if not answer_is_whole(self._received):
            return
        if not self._received.startswith(b"HTTP/1.1 200"):
            self._fail(f"the server answered {bytes(self._received[:300])!r}")
            return
        self._window.latencies_ms.append((now - self._sent) * 1000)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(f"the server closed the connection: {error}")

    def _events(self, count: int, now: float) -> None:
        if self._last:
            self._window.gaps_ms.append((now - self._last) * 1000)
        else:
            self._window.firsts_ms.append((now - self._sent) * 1000)
        self._window.gaps_ms.extend([0.0] * (count - 1))  # they came together
        self._last = now

    def _send(self) -> None:
        self._received.clear()
        self._last = 0.0
        self._sent = time.perf_counter()
        if (message := self._window.next_message(self._sent)) is None:
            if not self._done.done():
                self._done.set_result(None)
            self._transport.close()
            return
        self._transport.write(message)

    def _fail(self, text: str) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(text))


def answer_is_whole(received: bytes | bytearray) -> bool:
    """Whether these bytes are a whole answer; no two are ever under way on a connection."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = bytes(received[:end]).lower()
    name = b"\r\ncontent-length: "
    at = head.find(name)
    if at >= 0:
        length = int(head[at + len(name) :].partition(b"\r\n")[0])
        return len(received) >= end + 4 + length
    return received.endswith(b"\r\n0\r\n\r\n")


async def run(job: Job) -> Load:
    """Run a job to its end. Raises RuntimeError for any answer that is not a 200."""
    loop = asyncio.get_running_loop()
    messages = [_message(job, body, headers) for headers in job.headers for body in job.bodies]
    began, cpu = time.perf_counter(), time.process_time()
    over_at = float("inf") if job.requests else began + job.seconds
    window = Window(job, random.Random(job.seed), messages, over_at, job.requests or 10**9)
    ends = [loop.create_future() for _ in range(job.clients)]
    for end in ends:
        await loop.create_connection(
            lambda end=end: Connection(window, end),  # type: ignore[misc]
            "127.0.0.1",
            job.port,
        )
    async with asyncio.timeout(job.seconds + GRACE_S):
        await asyncio.gather(*ends)
    return Load(
        requests=len(window.latencies_ms),
        seconds=time.perf_counter() - began,
        client_cpu_s=time.process_time() - cpu,
        p50_ms=statistics.median(window.latencies_ms),
        first_p50_ms=statistics.median(window.firsts_ms or [0.0]),
        gap_p50_ms=statistics.median(window.gaps_ms or [0.0]),
        gap_p99_ms=quantile(window.gaps_ms or [0.0], 0.99),
    )


def quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)]


def _message(job: Job, body: str, headers: Mapping[str, str]) -> bytes:
    data = body.encode()
    given = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (
        f"POST {job.path} HTTP/1.1\r\nHost: 127.0.0.1:{job.port}\r\n{given}"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    ).encode() + data


class Loader:
    """The process that makes the load. One job at a time, as one JSON line."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def run(self, job: Job) -> Load:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(job)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the load process ended: its error is above")
        record: dict[str, Any] = json.loads(line)
        return Load(**record)


def main() -> None:
    for line in sys.stdin:
        load = uvloop.run(run(Job(**json.loads(line))))
        print(json.dumps(asdict(load)), flush=True)


if __name__ == "__main__":
    main()
