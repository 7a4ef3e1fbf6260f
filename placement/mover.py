"""Carries out steps, one after the other, and stops where it should."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final

from placement.guard import refusal
from placement.move_drain import OPENS_WITHIN_S, POLL_S, Drained, until_idle
from placement.moving import MoveStopped, Pace, Platform, Unseen
from placement.plan import Cell
from placement.problem import Packing
from placement.steps import Step, StepKind

# One burst is no peak: so many looks in a row.
LOOKS: Final = 5
# A new cell that dies so often while the old one drains is not fit to take its place.
MOST_LOST: Final = 3


class Mover:
    """`tell` gets a line for each step that is done."""

    def __init__(
        self,
        platform: Platform,
        pace: Pace,
        tell: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._platform = platform
        self._pace = pace
        self._tell = tell
        self._now = now
        self._sleep = sleep

    def run(self, steps: Iterable[Step], before: tuple[Cell, ...], packing: Packing) -> int:
        """Batches done. before, packing: as they are now, to go back to. Raises MoveStopped."""
        done = 0
        for _, batch in groupby(steps, key=lambda step: step.batch):
            if done:
                self._sleep(self._pace.pause_s)
            self._require_quiet(done)
            last = self._batch(tuple(batch), before, packing)
            before, packing, done = last.cells, last.packing, done + 1
        return done

    def finish(
        self,
        gone: tuple[str, ...],
        drained: frozenset[str],
        cells: tuple[Cell, ...],
        packing: Packing,
    ) -> None:
        """Drop what a move that was broken off has left. drained: by it, in part of those gone.

        Drained anew: the old drain may run out meanwhile. Raises MoveStopped.
        """
        ready = self._platform.ready()
        closing = [app for app in gone if app in drained or ready.get(app, 0)]
        self._close(closing)
        if self._until_idle(closing) is Drained.OPEN:
            raise MoveStopped(
                f"nothing was dropped: the drain of {closing[0]} is not in force at every ingress; "
                "see `modelyard status`, then give the same command again"
            )
        self._drop(gone, cells, packing)
        self._end_drains(sorted(drained - set(gone)))

    def _require_quiet(self, done: int) -> None:
        why = ""
        for look in range(LOOKS):
            why = refusal(self._platform.load(), self._pace.peak)
            if not why:
                return
            if look < LOOKS - 1:
                self._sleep(POLL_S)
        raise MoveStopped(f"{_so_far(done)}: {why}")

    def _batch(self, batch: tuple[Step, ...], before: tuple[Cell, ...], packing: Packing) -> Step:
        for step in batch:
            if step.kind is StepKind.ADD:
                self._platform.deploy(step.cells, step.packing)
            elif step.kind is StepKind.READY:
                self._wait_ready(step, before, packing)
            elif step.kind is StepKind.SHIFT:
                self._shift(step, before, packing)
            elif step.kind is StepKind.DRAIN:
                self._wait_idle(step, before, packing)
            else:
                self._drop(step.leaves, step.cells, step.packing)
            self._tell(f"batch {step.batch + 1}: {step.kind} done, {_words(step)}")
        return batch[-1]

    def _wait_ready(self, step: Step, before: tuple[Cell, ...], packing: Packing) -> None:
        until = self._now() + self._pace.ready_within_s
        while True:
            failed = ""
            try:
                late = self._late(step)
                if not late:
                    return
                failed = next((why for app in late if (why := self._platform.failure(app))), "")
                why = failed or f"not ready within {self._pace.ready_within_s:g} s"
                last = f"{late[0]} did not start ({why})"
            except Unseen as error:
                last = f"whether {step.arrives[0][0]} has started is not known ({error})"
            if failed or self._now() >= until:
                self._undo(step, last, before, packing)
            self._sleep(POLL_S)

    def _shift(self, step: Step, before: tuple[Cell, ...], packing: Packing) -> None:
        """Looks again first: what was ready a moment ago may have died."""
        self._wait_ready(step, before, packing)
        self._close(step.leaves)

    def _wait_idle(self, step: Step, before: tuple[Cell, ...], packing: Packing) -> None:
        """Meanwhile the old cells work again whenever what came in their place does not."""
        lost = 0
        while True:
            end = self._until_idle(step.leaves, lambda: bool(self._late(step)))
            if end is Drained.IDLE:
                return
            self._end_drains(step.leaves)
            # The new cells may go only when every ingress sends to the old ones again.
            self._sleep(OPENS_WITHIN_S)
            lost += 1
            if end is Drained.OPEN or lost > MOST_LOST:
                why = (
                    f"the drain of {step.leaves[0]} was removed, or does not reach every ingress"
                    if end is Drained.OPEN
                    else f"{step.arrives[0][0]} was lost {lost} times"
                )
                self._undo(step, why, before, packing)
            self._shift(step, before, packing)

    def _undo(self, step: Step, why: str, before: tuple[Cell, ...], packing: Packing) -> None:
        self._platform.deploy(before, packing)
        raise MoveStopped(
            f"{why}: the new cells of batch {step.batch + 1} are dropped again and nothing has "
            "moved in it; see `modelyard status`"
        )

    def _until_idle(self, apps: Sequence[str], lost: Callable[[], bool] = lambda: False) -> Drained:
        return until_idle(
            self._platform, apps, self._pace, lost, self._tell, self._now, self._sleep
        )

    def _drop(self, apps: Sequence[str], cells: tuple[Cell, ...], packing: Packing) -> None:
        """Ends their drains once they have gone: a cell that comes later may have such a name."""
        self._platform.deploy(cells, packing)
        until = self._now() + self._pace.drain_within_s
        while self._now() < until and self._any_there(apps):
            self._sleep(POLL_S)
        self._end_drains(apps)

    def _any_there(self, apps: Sequence[str]) -> bool:
        try:
            return bool(set(apps) & set(self._platform.ready()))
        except Unseen:
            return True

    def _close(self, apps: Iterable[str]) -> None:
        for app in apps:
            self._platform.drain(app, self._pace.drain_within_s + self._pace.ready_within_s)

    def _end_drains(self, apps: Sequence[str]) -> None:
        for app in apps:
            self._platform.end_drain(app)

    def _late(self, step: Step) -> list[str]:
        ready = self._platform.ready()
        return [app for app, replicas in step.arrives if ready.get(app, 0) < replicas]


def _so_far(done: int) -> str:
    return f"stopped after {done} batches" if done else "nothing was moved"


def _words(step: Step) -> str:
    return ", ".join(
        f"{move.item} from {move.source} to {move.target}"
        + (f" ({move.replicas} replicas)" if move.replicas > 1 else "")
        for move in step.moves
    )
