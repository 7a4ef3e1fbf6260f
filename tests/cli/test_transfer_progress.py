from io import StringIO

from rich.console import Console

from modelyard.cli.transfer_progress import shown


def test_without_a_terminal_a_line_every_five_seconds() -> None:
    now = 100.0
    console = Console(file=StringIO(), force_terminal=False)
    with shown("pull tiny@1.0.0", console, lambda: now) as progress:
        for now in (101.0, 104.9, 105.0, 106.0, 109.9, 110.5):
            progress(int(now * 1e6), 200_000_000)
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue().splitlines() == [
        "pull tiny@1.0.0: 105 of 200 MB",
        "pull tiny@1.0.0: 110 of 200 MB",
    ]


def test_on_a_terminal_a_bar() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=120)
    with shown("pull tiny@1.0.0", console) as progress:
        progress(50_000_000, 100_000_000)
    assert isinstance(console.file, StringIO)
    assert "50.0/100.0 MB" in console.file.getvalue()
