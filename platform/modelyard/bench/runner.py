"""Sends a plan on time, whatever becomes of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.recorder import Recorder
from modelyard.bench.retry import Retry
from modelyard.workload.plan import Planned

# Requests that are due at once are begun in one go, and then the loop gets its turn to write them.
BATCH: Final = 64


class Sender(Protocol):
    async def send(self, planned: Planned) -> Outcome:
        """One attempt. Raises nothing but CancelledError: what fails is an Outcome too."""
        ...


@dataclass(slots=True)
class Progress:
    """For whoever watches: requests begun, ended, and the schedule's second."""

    begun: int = 0
    ended: int = 0
    refused: int = 0
    failed: int = 0
    at_s: float = 0.0


class Runner:
    """`now` must be the clock of the sender's outcomes; its loop's timers must follow it."""

    def __init__(
        self,
        sender: Sender,
        recorder: Recorder,
        *,
        now: Callable[[], float],
        retry: Retry | None = None,
        seed: int = 0,
    ) -> None:
        self._sender = sender
        self._recorder = recorder
        self._now = now
        self._retry = retry or Retry()
        self._draw = random.Random(f"{seed}:retry").random
        self._stopped = asyncio.Event()
        self.progress = Progress()

    def stop(self) -> None:
        """Begin nothing more and wait for nothing more: `run` returns at once."""
        self._stopped.set()

    async def run(self, plan: Iterable[Planned], *, closed_loop_users: int | None = None) -> None:
        """Until every request has ended, or `stop`.

        Open loop, unless there are users: each of those sends the next request of the plan when
        its last is answered, not before it is due, and latencies count from the sending. That
        measures another system (a slow server gets less load): for comparison only.
        """
        began = self._now()
        self._recorder.begin(began)
        if closed_loop_users is None:
            work = self._issue(plan, began)
        else:
            work = self._take_turns(iter(plan), closed_loop_users, began)
        sending, stopped = asyncio.ensure_future(work), asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait((sending, stopped), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            stopped.cancel()
            await asyncio.gather(sending, stopped, return_exceptions=True)

    async def _issue(self, plan: Iterable[Planned], began: float) -> None:
        in_one_go = 0
        async with asyncio.TaskGroup() as group:
            for planned in plan:
                wait_s = began + planned.at_s - self._now()
                in_one_go += 1
                if wait_s > 0 or in_one_go >= BATCH:
                    await asyncio.sleep(max(0.0, wait_s))
                    in_one_go = 0
                group.create_task(self._request(planned, began + planned.at_s))

    async def _take_turns(self, plan: Iterator[Planned], users: int, began: float) -> None:
        async def turns() -> None:
            for planned in plan:  # shared: each takes what the others left
                await asyncio.sleep(max(0.0, began + planned.at_s - self._now()))
                await self._request(planned, self._now())

        async with asyncio.TaskGroup() as group:
            for _ in range(users):
                group.create_task(turns())

    async def _request(self, planned: Planned, due: float) -> None:
        begun = self._now()
        self.progress.begun += 1
        self.progress.at_s = planned.at_s
        self._recorder.sent(planned, begun - due)
        try:
            outcome = await self._until_answered(planned)
        except asyncio.CancelledError:
            self._end(planned, due, Outcome(Verdict.UNFINISHED, begun, self._now()))
            raise
        self._end(planned, due, outcome)

    async def _until_answered(self, planned: Planned) -> Outcome:
        attempt = 0
        self._retry.request()
        while True:
            attempt += 1
            self._recorder.attempt(planned)
            outcome = await self._sender.send(planned)
            self._recorder.answer(planned, outcome)
            pause_s = self._retry.pause_s(outcome, attempt, self._draw())
            if pause_s is None:
                return outcome
            await asyncio.sleep(pause_s)

    def _end(self, planned: Planned, due: float, outcome: Outcome) -> None:
        self._recorder.end(planned, due, outcome)
        self.progress.ended += 1
        self.progress.refused += outcome.verdict is Verdict.REJECTED
        self.progress.failed += outcome.verdict is Verdict.FAILED
