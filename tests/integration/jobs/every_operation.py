"""A job of the platform's cluster that tries everything; prints what it saw as one JSON object."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import aclosing
from typing import Any

import ray
from ray.exceptions import RayTaskError
from ray.serve.handle import DeploymentHandle

from modelyard.client import Models, SyncModels
from modelyard.config.demo import DEMO_KEY, NIGHTLY_KEY
from modelyard.contract.errors import RequestError

CHAT, EMBED, INTENT, RERANK = (
    "support-assistant",
    "support-embed",
    "support-intent",
    "support-rerank",
)
CAPITAL = "What is the capital of France?"
DOCUMENTS = [
    "Parcels leave our warehouse on weekdays before noon.",
    "Refunds for duplicate charges are paid within five working days.",
]


async def answers() -> dict[str, Any]:
    models = Models(DEMO_KEY)
    one = await models.generate(CHAT, CAPITAL, max_output_tokens=16, temperature=0)
    embedded = await models.embed(EMBED, ["a dog", "a puppy", "an invoice"])
    classes = await models.classify(INTENT, ["Where is my parcel?"])
    ranking = await models.rerank(RERANK, "I was charged twice", DOCUMENTS)
    dog, puppy, invoice = embedded.vectors
    return {
        "generate": [one.text, one.finish_reason, one.model_version, one.usage.output_tokens],
        "embed": [list(embedded.vectors.shape), bool(dog @ puppy > dog @ invoice)],
        "classify": [classes.labels, list(classes.probabilities.shape)],
        "rerank": ranking.order,
        "stream": await streamed(models),
    }


async def streamed(models: Models) -> list[Any]:
    asked = models.stream(CHAT, CAPITAL, max_output_tokens=16, temperature=0)
    chunks = [chunk async for chunk in asked]
    final = chunks[-1].final
    assert final is not None
    return ["".join(chunk.text for chunk in chunks), final.text, final.finish_reason, len(chunks)]


def answers_without_a_loop() -> dict[str, Any]:
    models = SyncModels(DEMO_KEY)
    one = models.generate(CHAT, CAPITAL, max_output_tokens=16, temperature=0)
    chunks = list(models.stream(CHAT, CAPITAL, max_output_tokens=16, temperature=0))
    return {
        "generate": one.text,
        "embed": list(models.embed(EMBED, ["a dog"]).vectors.shape),
        "classify": models.classify(INTENT, ["Where is my parcel?"]).labels,
        "rerank": models.rerank(RERANK, "I was charged twice", DOCUMENTS).order,
        "stream": "".join(chunk.text for chunk in chunks),
    }


async def refusals() -> dict[str, str]:
    demo = Models(DEMO_KEY)
    asked = {
        "wrong key": Models("my_nobody_nothing").classify(INTENT, ["x"]),
        "foreign model": Models(NIGHTLY_KEY).rerank(RERANK, "x", DOCUMENTS),
        "unknown model": demo.classify("nothing", ["x"]),
        "wrong kind": demo.classify(CHAT, ["x"]),
        "too long": demo.classify(INTENT, ["word " * 400]),
        "too large": demo.classify(INTENT, ["x" * 5_000_000]),
        "deadline": demo.generate(
            CHAT, "Tell a long story.", max_output_tokens=512, deadline_s=0.5
        ),
    }
    said = {}
    for name, call in asked.items():
        try:
            await call
        except RequestError as error:
            said[name] = error.code
    return said


async def leave_a_stream() -> None:
    stream = Models(DEMO_KEY).stream(CHAT, "Tell a long story.", max_output_tokens=512)
    async with aclosing(stream) as chunks:
        for _ in range(5):
            await anext(chunks)


async def cut_a_stream() -> list[Any]:
    """A deadline in the middle of a stream."""
    stream = Models(DEMO_KEY).stream(
        CHAT, "Tell a long story.", max_output_tokens=512, temperature=0, deadline_s=3.0
    )
    texts: list[str] = []
    try:
        async for chunk in stream:
            texts.append(chunk.text)
    except RequestError as error:
        return [error.code, error.partial == "".join(texts)]
    return ["ended", True]


def reconfigure_by_handle() -> str:
    handle: Any = DeploymentHandle("Ingress", "ingress")
    handle._init(_run_router_in_separate_loop=True)
    try:
        handle.reconfigure.remote({"schema": "modelyard/table/v1"}).result(timeout_s=30)
    except RayTaskError as error:
        return type(error.cause).__name__
    return "taken"


def main() -> None:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
    seen = {
        "async": asyncio.run(answers()),
        "sync": answers_without_a_loop(),
        "refused": asyncio.run(refusals()),
        "cut": asyncio.run(cut_a_stream()),
        "reconfigure": reconfigure_by_handle(),
    }
    asyncio.run(leave_a_stream())
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
