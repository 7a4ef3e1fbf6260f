"""A Transport that follows a script: what replicas would do, without a replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from modelyard.contract.envelope import Answer, Envelope, Failure, Item
from modelyard.routing.pool import Cell


@dataclass(frozen=True, slots=True)
class Sleep:
    """The replica works for so many seconds of the loop's clock."""

    seconds: float


# An answer is sent, an exception is raised, an event is waited for, a Sleep passes.
Step = Answer | BaseException | asyncio.Event | Sleep


class End(StrEnum):
    """How a call to the fake replica ended."""

    RUNNING = "running"
    COMPLETE = "complete"  # the last answer was sent, or the script was played to its end
    RAISED = "raised"  # the script raised
    CLOSED = "closed"  # the caller closed the stream between two items
    CANCELLED = "cancelled"  # the caller left while the replica worked


@dataclass(slots=True)
class Call:
    """One call as the replica saw it: where, what, how many answers went out, how it ended."""

    cell: Cell
    envelope: Envelope
    sent: int = 0
    end: End = field(default=End.RUNNING)

    @property
    def stopped(self) -> bool:
        """Whether the caller stopped it, so that an engine would have aborted its work."""
        return self.end in (End.CLOSED, End.CANCELLED)


class ScriptedTransport:
    """Plays one script per call, in order; `calls` records them.

    `call` answers with the first Item or Failure of its script, `stream` with each of them. A
    script without a final item ends early, as a dying replica does. Raises AssertionError when
    called more often than there are scripts.
    """

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self._scripts = list(scripts)
        self.calls: list[Call] = []

    def expect(self, *scripts: Sequence[Step]) -> None:
        """Add scripts for further calls."""
        self._scripts += scripts

    async def call(self, cell: Cell, envelope: Envelope) -> Answer:
        steps = self.stream(cell, envelope)
        try:
            return await anext(steps)
        except StopAsyncIteration:
            raise AssertionError("the script of a unary call holds no answer") from None
        finally:
            await steps.aclose()

    async def stream(self, cell: Cell, envelope: Envelope) -> AsyncGenerator[Answer]:
        assert self._scripts, f"no script is left for a call to {cell.app}"
        script = self._scripts.pop(0)
        call = Call(cell, envelope)
        self.calls.append(call)
        last: Answer | None = None
        try:
            for step in script:
                match step:
                    case Item() | Failure():
                        call.sent += 1
                        last = step
                        yield step
                    case BaseException():
                        raise step
                    case asyncio.Event():
                        await step.wait()
                    case Sleep():
                        await asyncio.sleep(step.seconds)
            call.end = End.COMPLETE
        except GeneratorExit:
            call.end = End.COMPLETE if _is_last(last) else End.CLOSED
            raise
        except asyncio.CancelledError:
            call.end = End.CANCELLED
            raise
        except BaseException:
            call.end = End.RAISED
            raise


def _is_last(answer: Answer | None) -> bool:
    """Whether a replica has nothing to do after this answer: closing it then stops no work."""
    return isinstance(answer, Failure) or (answer is not None and answer.final is not None)
