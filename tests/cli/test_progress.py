import io

from rich.console import Console

from cluster.observe import AppView, ReplicaView
from modelyard.cli.progress import Progress
from modelyard.lifecycle.phases import Phase


def view(phase: Phase, total_s: float, replica: str = "r1", app: str = "gen@1.0.0") -> AppView:
    one = ReplicaView(replica, phase, total_s, total_s, 0, 1, 0.1, None)
    return AppView(app, "DEPLOYING", "", {}, (one,))


def shown(*readings: list[AppView], terminal: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80)
    with Progress(console) as progress:
        for reading in readings:
            progress.show(reading)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_log_gets_one_line_per_change_of_phase() -> None:
    lines = shown(
        [view(Phase.LOADING, 1.0)],
        [view(Phase.LOADING, 1.5)],
        [view(Phase.WARMING, 2.0)],
        [view(Phase.READY, 3.25)],
        [view(Phase.READY, 3.25)],
    )
    name = f"  {'gen@1.0.0 r1':<36}"
    assert lines == [f"{name} Loading 1.0 s", f"{name} Warming 2.0 s", f"{name} Ready 3.2 s"]


def test_an_app_without_replicas_shows_serves_status() -> None:
    assert shown([AppView("gen@1.0.0", "DEPLOYING", "", {}, ())]) == [
        f"  {'gen@1.0.0':<36} DEPLOYING"
    ]


def test_each_replica_has_its_own_line() -> None:
    lines = shown([view(Phase.READY, 1.0, "r1"), view(Phase.LOADING, 1.0, "r2")])
    assert len(lines) == 2


def test_a_long_name_stays_on_one_line_and_no_markup_is_read() -> None:
    lines = shown([view(Phase.READY, 1.0, app="a" * 90 + "[bold]@1")])
    assert lines == ["  " + "a" * 90 + "[bold]@1 r1 Ready 1.0 s"]


def test_a_terminal_gets_a_table() -> None:
    text = "\n".join(shown([view(Phase.LOADING, 1.0)], terminal=True))
    assert "since start" in text
    assert "gen@1.0.0 r1" in text


def fetching(done_bytes: int) -> AppView:
    fetched = (done_bytes, 200_000_000)
    one = ReplicaView("r1", Phase.FETCHING, 1.0, 1.0, 0, 1, 0.1, None, fetched=fetched)
    return AppView("gen@1.0.0", "DEPLOYING", "", {}, (one,))


def test_a_log_says_a_fetch_once_and_a_terminal_its_bytes() -> None:
    readings = [[fetching(50_000_000)], [fetching(100_000_000)]]
    assert shown(*readings) == [f"  {'gen@1.0.0 r1':<36} Fetching 50 of 200 MB 1.0 s"]
    assert "Fetching 100 of 200 MB" in "\n".join(shown(*readings, terminal=True))
