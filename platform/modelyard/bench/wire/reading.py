"""What an answer has said so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_MESSAGE: Final = 200  # characters that are shown


@dataclass(slots=True)
class Reading:
    """pieces: events with content. ended: the terminal event came. error: its code and reason.

    message: the error's sentence, as the server wrote it.
    """

    pieces: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    ended: bool = False
    error: tuple[str, str] | None = None
    message: str = ""

    def usage(self, record: Any) -> None:
        """Take what a `usage` object counts, under either of the usual pairs of names."""
        if not isinstance(record, Mapping):
            return
        given, made = (
            next((record[name] for name in names if isinstance(record.get(name), int)), None)
            for names in (
                ("input_tokens", "prompt_tokens", "total_tokens"),
                ("output_tokens", "completion_tokens"),
            )
        )
        self.input_tokens = self.input_tokens if given is None else given
        self.output_tokens = self.output_tokens if made is None else made

    def made_tokens(self) -> int:
        """Tokens of the output: as the server counts them, else a token for each piece."""
        return self.pieces if self.output_tokens is None else self.output_tokens

    def fail(self, record: Any) -> None:
        """End with an error event. record: the whole of it, or its `error`."""
        self.error, self.message = cause(record), message(record)


def cause(record: Any) -> tuple[str, str]:
    """(code, reason) in the server's words, from the error bodies in use; "" where it has none."""
    if not isinstance(record, Mapping):
        return "", ""
    error = record.get("error", record)
    if not isinstance(error, Mapping):
        return "", _word(error)
    code = next(filter(None, (_word(error.get(n)) for n in ("modelyard_code", "code", "type"))), "")
    reason = next(filter(None, (_word(error.get(n)) for n in ("reason", "code", "type"))), "")
    return code, reason or _word(record.get("detail"))


def message(record: Any) -> str:
    """The sentence of an error body, as it is; "" where it has none."""
    if not isinstance(record, Mapping):
        return ""
    error = record.get("error", record)
    if isinstance(error, str):
        return error
    for holder in (error, record):
        if isinstance(holder, Mapping):
            for name in ("message", "detail"):
                if text := holder.get(name):
                    return text if isinstance(text, str) else json.dumps(text)
    return ""


def plain(text: str) -> str:
    """One short line: no control character of a peer may reach a terminal."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(shown.split())
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 3] + "..."


def _word(value: Any) -> str:
    """A text short enough to count by; a sentence with a request id in it would never repeat."""
    return value if isinstance(value, str) and len(value) <= 64 else ""
