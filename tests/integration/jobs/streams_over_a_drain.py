"""Streams through a stand-in deployment while one of its nodes leaves. Prints JSON.

argv: the cluster's address. Says "streaming" once its streams run, and ends when "stop" comes in.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncGenerator
from typing import Any

import ray
from ray import serve

ITEMS = 24
ITEM_S = 0.25
AT_ONCE = 8


class Slow:
    """Says which node it is on, slowly."""

    async def stream(self) -> AsyncGenerator[str]:
        node = ray.get_runtime_context().get_node_id()
        for _ in range(ITEMS):
            yield node
            await asyncio.sleep(ITEM_S)


class Streams:
    """So many at once until told to stop, each followed by another."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle.options(stream=True, method_name="stream")
        self.stop = threading.Event()
        self.whole = 0
        self.cut: list[str] = []
        self.nodes: list[str] = []

    async def run(self) -> None:
        while not self.stop.is_set():
            got = 0
            try:
                async for node in self.handle.remote():
                    got += 1
                    if got == 1:
                        self.nodes.append(node)
                        self.say()
            except Exception as error:  # noqa: BLE001  whatever it is, it is a cut
                self.cut.append(f"after {got}: {error!r}"[:200])
                continue
            self.whole += got == ITEMS
            if got < ITEMS:
                self.cut.append(f"ended after {got}")

    def say(self) -> None:
        if len(self.nodes) == AT_ONCE:
            print("streaming", flush=True)


async def main() -> None:
    ray.init(address=sys.argv[1], log_to_driver=False)
    deployment = serve.deployment(
        num_replicas=2,
        max_ongoing_requests=50,
        graceful_shutdown_timeout_s=60,
        ray_actor_options={"num_cpus": 1},
        health_check_period_s=2,
    )(Slow)
    streams = Streams(serve.run(deployment.bind(), name="slow", route_prefix=None))

    def listen() -> None:
        sys.stdin.readline()
        streams.stop.set()

    threading.Thread(target=listen, daemon=True).start()
    await asyncio.gather(*(streams.run() for _ in range(AT_ONCE)))
    last = sorted(set(streams.nodes[-AT_ONCE:]))
    record = {"whole": streams.whole, "cut": streams.cut, "last_nodes": last}
    print(json.dumps(record | {"first_nodes": sorted(set(streams.nodes[:AT_ONCE]))}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
