"""Recorded requests: when each came and how many tokens it had."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from modelyard.contract.errors import ConfigError

COLUMNS: Final = ("offset_s", "input_tokens", "output_tokens")
MAX_TOKENS: Final = 1_000_000  # of one text: the longest contexts there are, a body of some 5 MB
MAX_OFFSET_S: Final = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class Recorded:
    offset_s: float
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests in order of time. sha256: of the file they came from."""

    requests: tuple[Recorded, ...]
    sha256: str = ""

    @property
    def length_s(self) -> float:
        return self.requests[-1].offset_s

    def since(self, offset_s: float) -> Trace:
        """What came at `offset_s` or later, moved to the beginning. Raises ConfigError if none."""
        if offset_s > self.length_s:
            raise ConfigError(
                f"from_s is {offset_s:g}, but the trace ends at {self.length_s:g} s: begin earlier"
            )
        return Trace(
            tuple(
                Recorded(one.offset_s - offset_s, one.input_tokens, one.output_tokens)
                for one in self.requests
                if one.offset_s >= offset_s
            ),
            self.sha256,
        )


# By the name that the workload gives the file.
Traces = Mapping[str, Trace]


def read_traces(files: Iterable[str], base: Path) -> dict[str, Trace]:
    """Each file, found from `base`. Raises ConfigError."""
    return {file: read_trace(base / Path(file).expanduser()) for file in files}


def read_trace(path: Path) -> Trace:
    """A CSV file with the columns offset_s, input_tokens, output_tokens. Raises ConfigError."""
    try:
        content = path.read_bytes()
        reader = csv.DictReader(io.StringIO(content.decode()))
        missing = set(COLUMNS) - set(reader.fieldnames or ())
        if missing:
            raise ConfigError(
                f"{path}: the column {min(missing)} is missing: "
                f"the first line must name {', '.join(COLUMNS)}"
            )
        rows = [_row(path, reader.line_num, row) for row in reader]
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}): check the path") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: is no CSV text ({error}): give a CSV file") from error
    if not rows:
        raise ConfigError(f"{path}: holds no request: give one line for each")
    ordered = sorted(rows, key=lambda row: row.offset_s)
    return Trace(tuple(ordered), hashlib.sha256(content).hexdigest())


def _row(path: Path, line: int, row: Mapping[str, str | None]) -> Recorded:
    try:
        offset_s = float(row["offset_s"] or "")
        tokens = int(row["input_tokens"] or ""), int(row["output_tokens"] or "")
        if not math.isfinite(offset_s) or offset_s < 0 or min(tokens) < 0:
            raise ValueError("negative, or no number")
        if offset_s > MAX_OFFSET_S or max(tokens) > MAX_TOKENS:
            raise ValueError(f"more than a year, or than {MAX_TOKENS} tokens")
    except ValueError as error:
        raise ConfigError(
            f"{path}:{line}: {error}: each column must hold a number in its bounds, 0 or more"
        ) from error
    return Recorded(offset_s, *tokens)
