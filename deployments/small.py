"""What the small models' replicas share: a torch encoder behind the dynamic batcher."""

import asyncio
import json
import logging
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from prometheus_client.registry import Collector
from pydantic import BaseModel, ValidationError

from deployments.shell import Shell
from deployments.vitals import thread_cpu_s
from modelyard.artifacts.manifest import Manifest
from modelyard.batching.batcher import Batcher
from modelyard.config.table import describe
from modelyard.config.tunables import BatchTunables
from modelyard.contract.envelope import Envelope, Item, Usage
from modelyard.contract.errors import Internal
from modelyard.contract.operations import OPERATIONS_OF, Operation
from modelyard.contract.small import MAX_INPUTS
from modelyard.contract.small_answers import Head
from modelyard.contract.validate import validated_json
from modelyard.lifecycle.observed import NotFinite, Observed
from modelyard.lifecycle.questions import Question
from modelyard.lifecycle.watchdog import Evidence
from modelyard.telemetry.replica_metrics import QueueMetrics

log = logging.getLogger("modelyard.small")

# Reading and tokenising 4 KiB of text takes the loop 2 ms, and so does a long query paired with 32
# documents. More goes to a thread: the tokenizer lets go of the interpreter while it works, so the
# other requests run on. Texts are counted by the commas between them: reading the body to count
# them is the work itself, and prose with many commas goes to a thread for 0.1 ms more.
ON_LOOP_MAX_BYTES: Final = 4096
ON_LOOP_MAX_COMMAS: Final = 32
ON_LOOP_MAX_ROWS: Final = 16  # of an answer: writing 384 numbers takes 0.1 ms

NOT_FINITE: Final = "not_finite"  # the reason that modelyard.batching.encode gives

Request = TypeVar("Request", bound=BaseModel)
Result = TypeVar("Result")


class Small(Shell):
    """A subclass opens its model, says what a batch computes, and answers."""

    batcher: Batcher[Any, Any]
    _tunables = BatchTunables()

    @abstractmethod
    def open(self) -> None:
        """Load the model from `self.folder`. Blocks, on a thread."""

    @abstractmethod
    def compute(self, batch: Sequence[Any]) -> Sequence[Any]:
        """The batcher's work: for each input a result or an exception. Blocks, on its thread."""

    @abstractmethod
    def warm_body(self, texts: list[str], cut: int) -> dict[str, Any]:
        """A request with these texts, cut to `cut` tokens."""

    @abstractmethod
    def warm_options(self, texts: list[str]) -> Sequence[tuple[Operation, dict[str, Any]]]:
        """Every other path of a request: each encoding and operation."""

    async def load(self) -> None:
        await asyncio.to_thread(self._open_on_thread, self.place.cpus)
        self.batcher = Batcher(self.progress.counted(self.compute), self._tunables)

    async def warm(self) -> None:
        """Every option, then the shapes: one short input, a medium one, the longest and a full
        batch. Each makes torch choose its kernels."""
        for operation, body in self.warm_options(["warm up"]):
            await self._warm_one(operation, body)
        limits, longest = self._tunables, self.manifest.limits.max_context_tokens
        count = min(limits.max_batch_size, MAX_INPUTS)
        full = max(8, min(limits.max_batch_tokens // count, longest))
        shapes = [(1, min(8, longest)), (count, min(full, longest))]
        asked = self.manifest.warmup.prompts
        if "medium" in asked:
            shapes.append((1, max(8, longest // 4)))
        if "near-max-context" in asked:
            shapes.append((1, longest))
        operation = OPERATIONS_OF[self.KIND][0]
        took: dict[float, dict[str, Any]] = {}
        for inputs, tokens in shapes:
            body = self.warm_body(["warm " * tokens] * inputs, tokens)
            took[await self._warm_one(operation, body)] = body
        # The slowest again: what a first use costs is no part of a later batch.
        self.progress.longest_step_s = 0.0
        with self.progress.measured():
            await self._warm_one(operation, took[max(took)])

    async def _warm_one(self, operation: Operation, body: dict[str, Any]) -> float:
        """Seconds that the request took."""
        began = time.monotonic()
        await self.answer_own(operation, body)
        return time.monotonic() - began

    async def answer_own(self, operation: Operation, body: dict[str, Any]) -> Any:
        """The answer's JSON to a request of the platform's own."""
        whole = body | {"model": self.manifest.full_name}
        item = await self.answer(self.own_envelope(operation, json.dumps(whole).encode()))
        return json.loads(item.data)

    async def observe(self, question: Question) -> Observed:
        """NotFinite where the answer path refuses what the model computed."""
        try:
            return await self.observe_numbers(question)
        except Internal as error:
            if error.reason != NOT_FINITE:
                raise
            return NotFinite(error.message)

    @abstractmethod
    async def observe_numbers(self, question: Question) -> Observed:
        """The answer to a golden question. Raises Internal where it is no number."""

    def collectors(self) -> tuple[Collector, ...]:
        return (QueueMetrics(self._inputs),)

    def evidence(self) -> Evidence:
        # Where a GPU computes, the thread spins while it waits.
        cpu_s = None if self.place.gpus else thread_cpu_s(self.progress.thread)
        return Evidence(self.progress.steps, bool(self.batcher.statistics().running), cpu_s)

    def _inputs(self) -> tuple[int, int]:
        held = self.batcher.statistics()
        return held.running, held.waiting

    def reconfigure(self, user_config: Any) -> None:
        """Adopt tunables. Wrong ones are refused in the log, and the last good ones stay."""
        try:
            self._tunables = BatchTunables.model_validate(user_config)
        except ValidationError as error:
            for line in describe(error, BatchTunables, user_config):
                log.error("user_config is refused, the last good one stays: %s", line)
            return
        self.batcher.reconfigure(self._tunables)

    async def read(self, body: bytes, prepare: Callable[[bytes], Result]) -> Result:
        """prepare(body), where it holds nobody up."""
        if len(body) <= ON_LOOP_MAX_BYTES and body.count(b",") <= ON_LOOP_MAX_COMMAS:
            return prepare(body)
        return await asyncio.to_thread(prepare, body)

    async def write(
        self, envelope: Envelope, rows: int, tokens: int, build: Callable[[Head], bytes]
    ) -> Item:
        """The answer that `build` makes of its head. rows: how many results it writes."""
        head = Head(envelope.answer_id, envelope.model_alias, int(time.time()), tokens)
        on_loop = rows <= ON_LOOP_MAX_ROWS
        data = build(head) if on_loop else await asyncio.to_thread(build, head)
        return Item(data, 0, Usage(input_tokens=tokens, output_tokens=0))

    def _open_on_thread(self, cpus: int) -> None:
        # The tokenizer would otherwise start a thread for every core of the machine.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import torch  # here, not above: Serve's builder task imports this module and needs no torch

        torch.set_num_threads(cpus)
        share = self.args.gpu_memory_utilization
        if share is not None and self.place.gpus:
            # Of a device that others share: torch's allocator would take what it likes.
            torch.cuda.set_per_process_memory_fraction(share)
        self.open()


def dtype_of(manifest: Manifest) -> Any:
    """The torch dtype that a version computes in."""
    import torch

    return getattr(torch, manifest.runtime.dtype)


def parse(model: type[Request], body: bytes) -> Request:
    """The request in a body. Raises InvalidRequest; the ingress has validated it, a job may not."""
    return validated_json(model, body)
