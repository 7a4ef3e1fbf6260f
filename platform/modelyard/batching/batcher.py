"""The dynamic batcher: many callers' inputs through one model on one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Generic

from modelyard.batching.entry import Entry, In, Out, index_of
from modelyard.batching.form import START_COST_TOKENS, Waiting, form_batch
from modelyard.config.tunables import BatchTunables
from modelyard.contract.errors import Internal, RequestError, from_failure

# The oldest that are looked at for one batch: sorting the whole of a queue of 100 000 would hold up
# the loop for 50 ms, and a thousand lengths pack as well.
_WINDOW: Final = 1024


@dataclass(frozen=True, slots=True)
class BatchStatistics:
    """waiting, running: inputs now; batches, items: done since the start."""

    waiting: int
    running: int
    batches: int
    items: int


class Batcher(Generic[In, Out]):
    """Gathers inputs into batches and runs `compute` on them, one batch at a time.

    `compute` gets the inputs of a batch and returns for each a result, or the exception that its
    caller shall see. It runs on a thread of its own: a forward pass on the loop would stop every
    other request, and a second thread would only share the same cores. Use from one loop.

    A caller that is cancelled leaves the queue at once, but is held while its batch computes: a
    thread cannot be stopped, and the slot it takes at this replica is not free before.
    """

    def __init__(
        self,
        compute: Callable[[Sequence[In]], Sequence[Out | Exception]],
        tunables: BatchTunables,
        start_cost_tokens: int = START_COST_TOKENS,
    ) -> None:
        self._compute = compute
        self._tunables = tunables
        self._start_cost_tokens = start_cost_tokens
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batch")
        self._waiting: dict[Waiting, Entry[In, Out]] = {}  # in order of arrival
        self._changed = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._running: frozenset[Entry[In, Out]] = frozenset()
        self._ended: asyncio.Future[None]
        self._arrivals = self._batches = self._items = 0

    async def submit(self, item: In, tokens: int) -> Out:
        """The result for one input of `tokens` tokens. Raises what `compute` gave for it."""
        entry = self._enqueue(item, tokens)
        try:
            return await entry.future
        except asyncio.CancelledError:
            await self._until_computed([entry])
            raise
        finally:
            self._leave([entry])

    async def submit_all(
        self, items: Sequence[tuple[In, int]], name: str = "input", first: int = 0
    ) -> list[Out]:
        """The results for one request's (input, tokens) pairs, in order.

        The first failure fails the request, its text naming the input's index, and the others
        leave the queue: nobody would read their results. first: the index of the first of them,
        for a request that submits its inputs in parts.
        """
        entries = [self._enqueue(item, tokens) for item, tokens in items]
        try:
            return await asyncio.gather(*(entry.future for entry in entries))
        except RequestError as error:
            message = f"{name} {first + index_of(error, entries)}: {error.message}"
            raise from_failure(replace(error.failure(), message=message)) from error
        except Exception as error:
            error.add_note(f"{name} {first + index_of(error, entries)}")
            raise
        except asyncio.CancelledError:
            await self._until_computed(entries)
            raise
        finally:
            self._leave(entries)

    def reconfigure(self, tunables: BatchTunables) -> None:
        """Takes effect with the next batch."""
        self._tunables = tunables
        self._changed.set()

    def statistics(self) -> BatchStatistics:
        return BatchStatistics(len(self._waiting), len(self._running), self._batches, self._items)

    def _enqueue(self, item: In, tokens: int) -> Entry[In, Out]:
        loop = asyncio.get_running_loop()
        self._arrivals += 1
        place = Waiting(self._arrivals, tokens)
        entry: Entry[In, Out] = Entry(place, item, loop.time(), loop.create_future())
        self._waiting[place] = entry
        self._changed.set()
        # A task that ends with the queue rather than one for life: nothing to stop at the end. It
        # first runs after this turn of the loop, so what arrives in one turn becomes one batch.
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        return entry

    def _leave(self, entries: Sequence[Entry[In, Out]]) -> None:
        for entry in entries:
            entry.future.cancel()
            self._waiting.pop(entry.place, None)

    async def _until_computed(self, entries: Sequence[Entry[In, Out]]) -> None:
        """Out of the queue now, and back when no batch that runs holds any of them. A second
        cancellation does not shorten it: a deadline and a caller that leaves often come together.
        """
        self._leave(entries)
        while not self._running.isdisjoint(entries):
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._ended)

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._wait_for_company()
                if batch := [self._waiting.pop(place) for place in self._form()]:
                    await self._run(batch)
        finally:
            self._worker = None

    def _form(self) -> list[Waiting]:
        limits = self._tunables
        return form_batch(
            list(islice(self._waiting, _WINDOW)),
            limits.max_batch_size,
            limits.max_batch_tokens,
            self._start_cost_tokens,
        )

    async def _wait_for_company(self) -> None:
        """Until a full batch waits, or the oldest input has waited `max_wait_ms`."""
        loop = asyncio.get_running_loop()
        while self._waiting and not self._is_full():
            oldest = next(iter(self._waiting.values()))
            left_s = oldest.arrived_s + self._tunables.max_wait_ms / 1000 - loop.time()
            if left_s <= 0:
                return
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()

    def _is_full(self) -> bool:
        count, limits = len(self._waiting), self._tunables
        if limits.max_wait_ms == 0 or count >= limits.max_batch_size:
            return True
        return count * max(place.tokens for place in self._waiting) >= limits.max_batch_tokens

    async def _run(self, batch: list[Entry[In, Out]]) -> None:
        """To its end, even when all of its callers have gone: a thread that computes cannot be
        stopped, and starting the next batch beside it would slow both."""
        self._running = frozenset(batch)
        self._ended = asyncio.get_running_loop().create_future()
        try:
            await self._settle(batch)
        finally:
            self._leave(batch)  # only when this task was cancelled is any of them unsettled
            self._batches += 1
            self._items += len(batch)
            self._running = frozenset()
            self._ended.set_result(None)

    async def _settle(self, batch: list[Entry[In, Out]]) -> None:
        """Give each caller its result. A batch that fails as a whole is run again one by one, so
        that only the input at fault fails."""
        loop = asyncio.get_running_loop()
        try:
            items = [entry.item for entry in batch]
            results = await loop.run_in_executor(self._executor, self._checked, items)
        except Exception as error:  # noqa: BLE001  a model's fault can be of any type; it is passed on
            if len(batch) == 1:
                batch[0].settle(error)
                return
            for entry in batch:
                if not entry.future.done():
                    await self._settle([entry])
            return
        for entry, result in zip(batch, results, strict=True):
            entry.settle(result)

    def _checked(self, items: Sequence[In]) -> Sequence[Out | Exception]:
        results = self._compute(items)
        if len(results) != len(items):
            raise Internal(f"the model gave {len(results)} results for {len(items)} inputs")
        return results
