"""A job that embeds one text after another on two places; says when it is under way, and how many
of its calls were answered or not."""

from __future__ import annotations

import asyncio
import json
import logging
import sys

import ray

from modelyard.client import Models
from modelyard.config.demo import DEMO_KEY
from modelyard.contract.errors import RequestError

UNDER_WAY = 20


async def main(calls: int) -> None:
    models = Models(DEMO_KEY, max_in_flight=2)
    answered = 0
    failed: list[str] = []

    async def one(number: int) -> None:
        nonlocal answered
        try:
            await models.embed("support-embed", [f"text {number} of a long list " * 20])
        except RequestError as error:
            failed.append(f"{error.code}: {error.message}")
            return
        answered += 1
        if answered == UNDER_WAY:
            print("under way", flush=True)

    await asyncio.gather(*(one(number) for number in range(calls)))
    print(json.dumps({"answered": answered, "failed": failed}), flush=True)


if __name__ == "__main__":
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
    asyncio.run(main(int(sys.argv[2])))
