"""How far a push or a pull is: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from modelyard.artifacts.transfer import Progress as Listener

_LINE_EVERY_S: Final = 5.0


@contextmanager
def shown(
    what: str, console: Console, clock: Callable[[], float] = time.monotonic
) -> Iterator[Listener]:
    """A listener for the body's transfer. Lines begin only with what takes longer than one."""
    if not console.is_terminal:
        yield _lines(what, console, clock)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(what: str, console: Console, clock: Callable[[], float]) -> Listener:
    last = clock()

    def listen(done: int, total: int) -> None:
        nonlocal last
        now = clock()
        if now - last >= _LINE_EVERY_S:
            last = now
            line = f"{what}: {done / 1e6:.0f} of {total / 1e6:.0f} MB"
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    return listen
