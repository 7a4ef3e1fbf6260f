"""Where traces go: MODELYARD_TRACES and MODELYARD_TRACE_RATIO."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from modelyard.contract.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TraceTarget:
    """One of the two: the base URL of an OTLP collector (HTTP), or a folder for JSON lines."""

    url: str = ""
    folder: Path | None = None


def parse_traces(text: str | None) -> TraceTarget | None:
    """`otlp:http://host:4318` or `file:/folder`; None when it is not set. Raises ConfigError."""
    if not text:
        return None
    form, _, where = text.partition(":")
    if form == "otlp" and where.startswith(("http://", "https://")):
        return TraceTarget(url=where.rstrip("/"))
    if form == "file" and where.startswith("/"):
        return TraceTarget(folder=Path(where))
    raise ConfigError(
        f"MODELYARD_TRACES is {text!r}: write otlp:http://host:4318 or file:/absolute/folder, or "
        "leave it out to make no traces"
    )


def parse_ratio(text: str | None) -> float:
    """The share of requests to trace, 0 to 1; 1 when it is not set. Raises ConfigError."""
    if not text:
        return 1.0
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0.0 <= ratio <= 1.0:
        raise ConfigError(f"MODELYARD_TRACE_RATIO is {text!r}: write a number from 0 to 1")
    return ratio
