"""What `modelyard up` shows while it waits: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cluster.observe import AppView, ReplicaView
from modelyard.cli.serve_message import telling_line
from modelyard.cli.status_text import fetched_text
from modelyard.lifecycle.phases import Phase


class Progress:
    """Each replica's phase and seconds. In a log (no terminal): one line per change of phase."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._live = Live(console=self._console, refresh_per_second=4, transient=False)
        self._last: dict[str, str] = {}

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, apps: list[AppView]) -> None:
        if self._console.is_terminal:
            self._live.update(_table(apps))
            return
        for name, phase, seconds in _rows(apps):
            # A fetch says its bytes each second: a log wants the phase alone once.
            said = phase.split()[0] if seconds.endswith(" s") else f"{phase} {seconds}"
            if self._last.get(name) != said:
                self._last[name] = said
                line = f"  {name:<36} {phase} {seconds}"
                self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def _rows(apps: list[AppView]) -> list[tuple[str, str, str]]:
    rows = []
    for app in apps:
        for replica in app.replicas:
            name = f"{app.name} {replica.replica}"
            rows.append((name, _phase(replica), f"{replica.total_s:.1f} s"))
        if not app.replicas:
            # Serve's own words, when it has any: that an app cannot be placed, for one.
            rows.append((app.name, app.status, telling_line(app.message)[-160:]))
    return rows


def _phase(replica: ReplicaView) -> str:
    """The phase, with the bytes of a fetch: the one phase that tells how far it is."""
    if replica.phase is Phase.FETCHING and replica.fetched is not None:
        return f"{replica.phase} {fetched_text(replica.fetched)}"
    return str(replica.phase)


def _table(apps: list[AppView]) -> Table:
    table = Table("replica", "phase", "since start", box=None, pad_edge=False)
    for row in _rows(apps):
        table.add_row(*row)
    return table
