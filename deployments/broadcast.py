"""One call to every replica of a deployment, with what came back in time."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("modelyard.broadcast")


@dataclass(frozen=True, slots=True)
class Answers:
    """What the replicas answered. asked: how many there were; those without an answer failed."""

    given: tuple[Any, ...]
    asked: int


async def ask_all(handle: Any, method: str, *args: Any, timeout_s: float) -> Answers:
    """Call `method` on every replica that Serve knows. Raises nothing but a cancellation.

    Not `results_async`, Serve's public way: it loses every answer when one is late, and a replica
    that hangs is just when the others' are needed.
    """
    calls: list[Any] = []
    tasks: list[asyncio.Task[Any]] = []
    try:
        async with asyncio.timeout(timeout_s):
            calls = await handle.broadcast(method, *args)._fetch_replica_results_async()
            tasks = [asyncio.ensure_future(call.get_async()) for call in calls]
            if tasks:
                await asyncio.wait(tasks)
    except TimeoutError:
        log.info("not every replica answered %s within %g s", method, timeout_s)
    except Exception as error:  # noqa: BLE001  the edge to Serve: no deployment is no answer
        log.info("%s could not be asked: %r", method, error)
    finally:
        for call in calls:
            call.cancel()  # a late answer is of no use; a no-op for one that is there
        for task in tasks:
            task.cancel()
    given = [t.result() for t in tasks if t.done() and not t.cancelled() and not t.exception()]
    return Answers(tuple(given), len(calls))
