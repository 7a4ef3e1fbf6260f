"""A model that only sleeps, behind the platform's own shell and door."""

import asyncio
import math
import random
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, Final

from ray.serve import Application

from deployments import vllm_engine
from deployments.door import deployment_of
from modelyard.artifacts.manifest import Limits
from modelyard.config.model_args import SmallModelArgs
from modelyard.contract.envelope import Envelope
from modelyard.contract.operations import Kind
from modelyard.testing.tiny_model import write_tiny_model
from tests.benchmarks.instant import CHUNK, ChatAnswer, Instant

NAME: Final = "stand-in"
VERSION: Final = f"{NAME}@1.0.0"
SLOTS: Final = 8
MEAN_S: Final = 0.4
ITEMS: Final = 4  # of a stream, evenly over its time
SEED: Final = 5
BLOCK: Final = 100


def service_times(rng: random.Random) -> Iterator[float]:
    """Exponential, for ever. Each hundred are the hundred quantiles of the distribution, shuffled.

    Drawn one by one, a minute of them would have a mean that is off by 3 %, and so would be every
    capacity measured.
    """
    quantiles = [-math.log(1 - (place + 0.5) / BLOCK) for place in range(BLOCK)]
    unit = sum(quantiles) / BLOCK
    block = [MEAN_S * each / unit for each in quantiles]
    while True:
        rng.shuffle(block)
        yield from block


class StandIn(Instant):
    """Everything of the generator's shell but the engine; its time is spent asleep."""

    def __init__(self, args: Any) -> None:
        super().__init__(args)
        self._times = service_times(random.Random(SEED))

    async def _submit(self, envelope: Envelope) -> Any:
        meter = vllm_engine.meter_of_request.get()
        assert meter is not None
        service_s = next(self._times)
        if envelope.stream:
            return self._slept(service_s, meter)
        await asyncio.sleep(service_s)
        meter.output_tokens = ITEMS
        return ChatAnswer()

    async def _slept(self, service_s: float, meter: vllm_engine.Meter) -> AsyncGenerator[str]:
        for _ in range(ITEMS):
            await asyncio.sleep(service_s / ITEMS)
            meter.output_tokens += 1
            yield CHUNK


def write_artifact(folder: Path) -> None:
    """A folder that passes every check, though nothing ever computes with its weights."""
    limits = Limits(max_context_tokens=4096, max_output_tokens=1024, drain_s=60)
    write_tiny_model(
        folder,
        name=NAME,
        version=VERSION.partition("@")[2],
        kind=Kind.GENERATOR,
        limits=limits,
        source="tests/integration/stand_in.py",
    )


deployment = deployment_of(StandIn, max_ongoing_requests=SLOTS)


def app(args: SmallModelArgs) -> Application:
    """Serve's builder: `import_path: tests.integration.stand_in:app`."""
    return deployment.bind(args)
