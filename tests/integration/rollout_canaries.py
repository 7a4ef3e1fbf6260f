"""Canaries that are the real generator with one fault each, for the live test of rollouts.

`import_path: tests.integration.rollout_canaries:failing` (or `slow`). What a version does wrong by
its files is in rollout_versions.py.
"""

import asyncio
import random
from typing import Any, Final

from ray.serve import Application

from deployments.door import deployment_of
from deployments.generator import Generator
from modelyard.config.model_args import GeneratorArgs
from modelyard.contract.envelope import Envelope

FAILS: Final = 0.05
LATE_S: Final = 1.0
SEED: Final = 7
OWN: Final = "warm-up"  # the request id of a shell's own requests
SLOTS: Final = 40


class Failing(Generator):
    """One request of twenty fails, as by a bug of its own."""

    def __init__(self, args: Any) -> None:
        super().__init__(args)
        self._random = random.Random(SEED)

    async def _submit(self, envelope: Envelope) -> Any:
        if envelope.request_id != OWN and self._random.random() < FAILS:
            raise RuntimeError("a fault that the test put here")
        return await super()._submit(envelope)


class Slow(Generator):
    """Every request begins late."""

    async def _submit(self, envelope: Envelope) -> Any:
        if envelope.request_id != OWN:
            await asyncio.sleep(LATE_S)
        return await super()._submit(envelope)


_FAILING: Final = deployment_of(Failing, max_ongoing_requests=SLOTS)
_SLOW: Final = deployment_of(Slow, max_ongoing_requests=SLOTS)


def failing(args: GeneratorArgs) -> Application:
    return _FAILING.bind(args)


def slow(args: GeneratorArgs) -> Application:
    return _SLOW.bind(args)
