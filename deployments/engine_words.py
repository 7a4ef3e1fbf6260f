"""The root cause of an engine that did not start, from what its process wrote.

vLLM's engine is a process of its own. When it fails, ours is told "see root cause above", and above
is our error stream, which it shares: under Ray a file that can be read back.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_READ_BYTES: Final = 65536
_ERROR: Final = re.compile(
    r"^(?:\([^)]*\)\s*)?(?:ERROR\s.*?\]\s*)?((?:[A-Za-z_][\w]*\.)*[A-Z]\w*(?:Error|Exception|Exit)):\s*(\S.*)$"
)
_OF_THE_WRAPPER: Final = "Engine core initialization failed"
_STDERR: Final = Path("/proc/self/fd/2")


class EngineWords:
    """Marks where our error stream is now; `last_error` is the last error written since."""

    def __init__(self, stream: Path = _STDERR) -> None:
        self._stream = stream
        self._from = self._size()

    def last_error(self) -> str | None:
        """`RuntimeError: what it says`, or None where the stream is no file or says nothing."""
        end = self._size()
        if end <= self._from:
            return None
        try:
            with self._stream.open("rb") as stream:
                stream.seek(max(self._from, end - _READ_BYTES))
                text = stream.read().decode(errors="replace")
        except OSError:
            return None
        found = None
        for line in text.splitlines():
            match = _ERROR.match(line.strip())
            if match is not None and _OF_THE_WRAPPER not in line:
                found = f"{match[1].rpartition('.')[2]}: {match[2].strip()}"
        return found

    def _size(self) -> int:
        try:
            path = self._stream.resolve()
            return path.stat().st_size if path.is_file() else 0
        except OSError:
            return 0
