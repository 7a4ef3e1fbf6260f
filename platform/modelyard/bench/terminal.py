"""The result and the progress on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from modelyard.bench import columns, sentences
from modelyard.bench import runner as running
from modelyard.bench.result import Result

LOG_WIDTH = 200  # of a table in a file or a pipe, where rich assumes 80 and breaks the figures


def print_result(result: Result, console: Console) -> None:
    """Tables, causes, verdict; warnings last, where they are read."""
    if not console.is_terminal:
        console = Console(file=console.file, width=LOG_WIDTH)
    title = f"{result.options.url}, times in ms, SLO {result.workload.slo}"
    console.print(_table(title, columns.RATE_HEAD, columns.by_rate(result)))
    if rows := columns.by_stream(result):
        console.print(_table("by stream", columns.STREAM_HEAD, rows))
    for label in ("tenant", "priority"):
        if rows := columns.by_label(result, label):
            console.print(_table(f"by {label}", ("rate", label, *columns.HEAD), rows))
    console.print(f"{columns.MEANING}.", markup=False, highlight=False)
    for level in result.levels:
        for cause in sentences.causes(level):
            console.print(f"  {level.rate_per_s:g}/s {cause}", markup=False, highlight=False)
    for note in (*result.notes, sentences.verdict(result)):
        console.print(note, markup=False, highlight=False)
    for warning in sentences.warnings(result):
        console.print(f"warning: {warning}.", style="bold red", markup=False, highlight=False)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    # Text everywhere: what the run was asked for may look like rich's markup.
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    for name in head:
        words = name in ("stream", "tenant", "priority")
        table.add_column(name, justify="left" if words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


class ProgressBar:
    """A bar for each rate; nothing but a line for each where there is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[said]}", markup=False),
            console=console,
        )
        self._duration_s = 0.0

    @contextmanager
    def level(self, rate_per_s: float, duration_s: float) -> Iterator[None]:
        name = f"{rate_per_s:g}/s"
        if not self._console.is_terminal:
            self._console.print(f"{name} for {duration_s:g} s ...", highlight=False)
            yield
            return
        self._task = self._bar.add_task(name, total=duration_s, said="")
        with self._bar:
            yield

    def update(self, progress: running.Progress) -> None:
        if not self._console.is_terminal:
            return
        said = (
            f"{progress.begun} sent, {progress.begun - progress.ended} under way, "
            f"{progress.refused} rejected, {progress.failed} failed"
        )
        self._bar.update(self._task, completed=progress.at_s, said=said)
