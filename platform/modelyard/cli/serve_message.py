"""The line of one of Serve's messages that says what is wrong."""

from __future__ import annotations

from typing import Final

# Advice that Serve ends a message with whatever happened.
_ADVICE: Final = "This may be caused by a slow __init__"


def telling_line(message: str) -> str:
    """The last line, as of a traceback, but for Serve's standing advice and lone full stops."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    telling = [line for line in lines if line != "." and not line.startswith(_ADVICE)]
    return (telling or lines or [""])[-1]
