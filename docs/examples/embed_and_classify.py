"""Embed and classify texts with Ray Data, as a job beside the platform. See docs/data-jobs.md.

RAY_ADDRESS=127.0.0.1:6389 RAY_AUTH_MODE=token MODELYARD_API_KEY=my_... \
    .venv/bin/python docs/examples/embed_and_classify.py --rows 10000 --output /tmp/tickets
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import ray
import ray.data

from modelyard.client import Models
from modelyard.contract.errors import (
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    RateLimited,
    ReplicaFailed,
    RequestError,
)

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "label": pa.string(),
        "embedding": pa.list_(pa.float32()),
        "error": pa.string(),  # null for a row that was answered
    }
)
# Of a CPU, for each actor and task: the job mostly waits for models, and must not take the places
# that the platform's replicas need. No GPU is asked for.
CPUS = 0.1
# After all retries. The rows are marked and may be run again; an unknown key or model is no row's
# fault and ends the job.
PASSING = (DeadlineExceeded, Overloaded, RateLimited, ReplicaFailed)

SENTENCES = (
    "Where is my parcel? It should have been here on day {}.",
    "I was charged {} times for one order and want my money back.",
    "I cannot sign in since I changed my phone, ticket {}.",
    "Please send the {} chairs back, they do not fit through our door.",
    "Does the lamp number {} work with a dimmer?",
)
TOO_LONG = "word " * 400


class EmbedAndClassify:
    """One actor of the pool. Ray Data runs a few batches at once in each."""

    def __init__(self, key: str, max_in_flight: int) -> None:
        self._models = Models(key, max_in_flight=max_in_flight)

    async def __call__(self, batch: pa.Table) -> pa.Table:
        rows = await self._answer(batch["text"].to_pylist())
        ids = batch["id"].to_pylist()
        return pa.Table.from_pylist(
            [{"id": id_} | row for id_, row in zip(ids, rows, strict=True)], schema=SCHEMA
        )

    async def _answer(self, texts: list[str]) -> list[dict[str, Any]]:
        try:
            embeddings, classes = await asyncio.gather(
                self._models.embed("support-embed", texts),
                self._models.classify("support-intent", texts),
            )
        except InvalidRequest as error:
            if len(texts) == 1:
                return [failed(error)]
            # One row of the batch is refused: halve it until that row stands alone.
            half = len(texts) // 2
            return await self._answer(texts[:half]) + await self._answer(texts[half:])
        except PASSING as error:
            return [failed(error)] * len(texts)
        return [
            {"label": label, "embedding": vector}
            for label, vector in zip(classes.labels, embeddings.vectors, strict=True)
        ]


def failed(error: RequestError) -> dict[str, Any]:
    return {"error": f"{error.code}: {error.message}"}


def tickets(rows: int, too_long_every: int) -> list[dict[str, Any]]:
    """Made-up texts, some longer than the models can read."""
    return [
        {"id": row, "text": TOO_LONG if (row + 1) % too_long_every == 0 else text_of(row)}
        for row in range(rows)
    ]


def text_of(row: int) -> str:
    return SENTENCES[row % len(SENTENCES)].format(row)


def run(arguments: argparse.Namespace, key: str) -> None:
    rows = tickets(arguments.rows, arguments.too_long_every)
    dataset = ray.data.from_items(rows, override_num_blocks=arguments.blocks)
    answered = dataset.map_batches(
        EmbedAndClassify,
        fn_constructor_kwargs={"key": key, "max_in_flight": arguments.in_flight},
        batch_size=arguments.batch,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=arguments.actors),
        num_cpus=CPUS,
    )
    started = time.monotonic()
    answered.write_parquet(
        str(arguments.output),
        ray_remote_args={"num_cpus": CPUS},
        mode=ray.data.SaveMode.OVERWRITE,
    )
    seconds = time.monotonic() - started
    report(arguments.output, seconds)


def report(folder: Path, seconds: float) -> None:
    table = pyarrow.parquet.read_table(folder, columns=["label", "error"])
    labels = Counter(table["label"].drop_null().to_pylist())
    errors = Counter(table["error"].drop_null().to_pylist())
    for label, count in labels.most_common():
        print(f"{count:7} {label}")
    for error, count in errors.most_common():
        print(f"{count:7} refused: {error}")
    print(f"{table.num_rows} rows in {seconds:.1f} s, {table.num_rows / seconds:.1f} rows/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--too-long-every", type=int, default=1000, help="one row in so many")
    parser.add_argument("--output", type=Path, required=True, help="a folder for Parquet files")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="rows in one request")
    parser.add_argument("--in-flight", type=int, default=8, help="requests at once per actor")
    parser.add_argument("--blocks", type=int, default=16, help="pieces that actors take")
    arguments = parser.parse_args()
    for name in ("MODELYARD_API_KEY", "RAY_ADDRESS"):
        if not os.environ.get(name):
            parser.error(f"set {name}: docs/data-jobs.md says to what")
    ray.init()  # at RAY_ADDRESS
    run(arguments, os.environ["MODELYARD_API_KEY"])


if __name__ == "__main__":
    main()
