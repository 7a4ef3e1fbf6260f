import pytest

from modelyard.cli.serve_message import telling_line

SLOW = "This may be caused by a slow __init__ or reconfigure method."


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("", ""),
        ("Traceback:\n  x\nValueError: no\n", "ValueError: no"),
        (
            f"Deployment 'G' has 1 replicas that took long.\n{SLOW}",
            "Deployment 'G' has 1 replicas that took long.",
        ),
        ("It failed\n.\n", "It failed"),
        (SLOW, SLOW),
    ],
)
def test_the_line_that_says_what_is_wrong_is_taken(message: str, line: str) -> None:
    assert telling_line(message) == line
