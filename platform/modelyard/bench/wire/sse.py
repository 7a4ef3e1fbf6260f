"""Server-sent events out of bytes that are cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Event(NamedTuple):
    name: str
    data: str


class EventParser:
    """The WHATWG event stream format, less `id` and `retry`, which no inference server needs."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that this chunk completes."""
        # A chunk may end between \r and \n: such a \r waits, or the \n would be a blank line.
        received = self._rest + chunk
        held = b"\r" if received.endswith(b"\r") else b""
        text = received[: len(received) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, last = text.split(b"\n")
        self._rest = last + held
        for line in lines:
            if line:
                self._field(line)
            else:
                yield from self._dispatch()

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            self._data.append(text)
        elif name == b"event":
            self._name = text

    def _dispatch(self) -> Iterator[Event]:
        if self._data:
            yield Event(self._name, "\n".join(self._data))
        self._name, self._data = "", []
