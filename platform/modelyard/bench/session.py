"""One run from the first connection to the result."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping
from typing import Final

import aiohttp

from modelyard.bench.http_sender import HttpSender
from modelyard.bench.request import Load
from modelyard.bench.result import Options, Result
from modelyard.bench.sweep import Sweep, Watcher
from modelyard.contract.errors import ConfigError
from modelyard.workload.mix import Workload

# Shorter than uvicorn's 5 s, the shortest in use: a request on a connection that the server just
# closes fails, and that would be the client's failure.
KEEPALIVE_S: Final = 4.0


def check_tenants(workload: Workload, keys: Mapping[str, str]) -> None:
    """Raises ConfigError for a tenant without a key."""
    for stream in workload.streams:
        if stream.tenant is not None and stream.tenant not in keys:
            raise ConfigError(
                f"stream {stream.name} sends as tenant {stream.tenant}, which has no key: "
                f"give --api-key {stream.tenant}=KEY"
            )


async def measure(
    load: Load, options: Options, keys: Mapping[str, str], watcher: Watcher
) -> Result:
    """Ctrl-C ends it with what was measured so far; a second one ends it without."""
    connector = aiohttp.TCPConnector(
        limit=0,
        force_close=options.new_connections,
        keepalive_timeout=None if options.new_connections else KEEPALIVE_S,
    )
    # Its own timeouts would be counted from somewhere else than ours.
    no_timeout = aiohttp.ClientTimeout(total=None, sock_connect=None)
    async with aiohttp.ClientSession(connector=connector, timeout=no_timeout) as session:
        sender = HttpSender(
            session,
            options.url,
            keys,
            seed=load.workload.seed,
            now=time.monotonic,
            timeout_s=options.timeout_s,
            connections=options.connections,
        )
        sweep = Sweep(load.workload, load.traces, options, sender, watcher, now=time.monotonic)
        _stop_on_interrupt(sweep)
        return await sweep.run()


def _stop_on_interrupt(sweep: Sweep) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        sweep.stop()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, stop)
