"""Tables and a progress bar for the experiments' commands."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

WIDE: Final = 150  # of a table in a file, which no terminal bounds


@contextmanager
def progress(what: str, total: int) -> Generator[Callable[[], None]]:
    """A bar on stderr, so that a table can be redirected; call what it gives once for each part."""
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def done() -> None:
            bar.advance(task)

        yield done


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """On stdout; the first column to the left, figures to the right."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
