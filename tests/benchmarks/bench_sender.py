"""What the load generator of `modelyard bench` costs on this machine: the figures of docs/bench.md.

    .venv/bin/python -m tests.benchmarks.bench_sender

The server is a process of its own on loopback, so that this process's CPU is the generator's alone.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

import aiohttp
import psutil
from aiohttp import web

from modelyard.bench.figures import Figures
from modelyard.bench.http_sender import HttpSender
from modelyard.bench.recorder import Recorder
from modelyard.bench.runner import Runner
from modelyard.workload.mix import Workload
from modelyard.workload.plan import plan

SECONDS: Final = 10.0
RATE_PER_S: Final = 200  # far below what the server can do: its queue must not be in the figures
STREAMS_PER_S: Final = 10
TOKENS: Final = 128
TOKEN_EVERY_S: Final = 0.005
CHUNK: Final = b'data: {"choices": [{"index": 0, "delta": {"content": " word"}}]}\n\n'
END: Final = (
    b'data: {"choices": [], "usage": {"prompt_tokens": 128, "completion_tokens": %d}}\n\n'
    b"data: [DONE]\n\n" % TOKENS
)
WHOLE: Final = json.dumps(
    {
        "choices": [{"message": {"content": "word"}}],
        "usage": {"prompt_tokens": 128, "completion_tokens": 1},
    }
).encode()


async def answer(request: web.Request) -> web.StreamResponse:
    if not (await request.json()).get("stream"):
        return web.Response(body=WHOLE, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(TOKENS):
        await response.write(CHUNK)
        await asyncio.sleep(TOKEN_EVERY_S)
    await response.write(END)
    return response


def serve(port: Connection) -> None:
    async def forever() -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(forever())


def workload(rate_per_s: float, **stream: Any) -> Workload:
    return Workload.model_validate(
        {
            "schema": "modelyard/workload/v1",
            "arrivals": {"poisson": {"rate_per_s": rate_per_s}},
            "streams": [{"name": "a", "route": "chat", "model": "m"} | stream],
        }
    )


async def cost(load: Workload, url: str) -> tuple[Figures, float]:
    """The figures of a run, and the CPU seconds it took."""
    recorder = Recorder(load, warmup_s=0.0, duration_s=SECONDS)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        sender = HttpSender(session, url, {}, seed=1, now=time.monotonic, timeout_s=60.0)
        began_s = time.process_time()
        await Runner(sender, recorder, now=time.monotonic).run(plan(load, {}, SECONDS))
    return recorder.total, time.process_time() - began_s


def report(name: str, load: Workload, url: str, count: Callable[[Figures], int]) -> None:
    total, cpu_s = asyncio.run(cost(load, url))
    late_ms = total.late.percentiles_ms(99)[0]
    done = count(total)
    print(
        f"{total.completed} requests, {done} {name}: {1000 * cpu_s / done:.3f} ms of CPU each, "
        f"{done / cpu_s:.0f}/s on a core of its own; late p99 {late_ms:.1f} ms"
    )


def main() -> None:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    server = spawn.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    print(f"{psutil.cpu_count()} cores, load average {psutil.getloadavg()[0]:.1f}")
    report("unary answers", workload(RATE_PER_S, stream=False), url, lambda one: one.completed)
    report("streamed tokens", workload(STREAMS_PER_S), url, lambda one: one.output_tokens)
    server.terminate()
    server.join()


if __name__ == "__main__":
    main()
