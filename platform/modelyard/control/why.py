"""What became of one request: its lines in the request logs, and in words."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

MAX_SEARCHED_BYTES: Final = 1024**3
MAX_LINES: Final = 20
FILES: Final = "requests-*.jsonl*"


def find_in_logs(
    folder: Path, request_id: str, max_bytes: int = MAX_SEARCHED_BYTES
) -> list[dict[str, Any]]:
    """The lines of a request in a node's logs, newest files first. Blocks: use a thread.

    Of every process that logged there, because the one that answered may have ended since. Stops
    after `max_bytes` or MAX_LINES.
    """
    lines: list[dict[str, Any]] = []
    left = max_bytes
    for path in sorted(folder.glob(FILES), key=_modified, reverse=True):
        size = _size(path)
        if size > left or len(lines) >= MAX_LINES:
            break
        left -= size
        if size:
            lines += _in_file(path, request_id)
    return sorted(lines[:MAX_LINES], key=lambda line: str(line.get("ts", "")))


def distinct(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those that two ingresses of one node both found, in the order of time."""
    unlike = {json.dumps(line, sort_keys=True): line for line in lines}
    return sorted(unlike.values(), key=lambda line: str(line.get("ts", "")))


def in_words(line: Mapping[str, Any]) -> list[str]:
    """One line of the log as sentences; what the line does not hold is left out."""
    said = [
        f"{line.get('ts', 'at an unknown time')}: {line.get('route', 'a route')} "
        f"for {line.get('tenant') or 'no known tenant'} with the key {line.get('key_id') or '-'}"
    ]
    if line.get("model"):
        said.append(_routing(line))
    if line.get("queued_ms") is not None:
        said.append(f"waited {_time(line['queued_ms'])} for a slot")
    if line.get("degraded"):
        said.append(_degraded(line))
    said.append(_ending(line))
    if tokens := _tokens(line):
        said.append(tokens)
    if line.get("ignored_fields"):
        said.append(f"fields that were ignored: {', '.join(line['ignored_fields'])}")
    return said


def _routing(line: Mapping[str, Any]) -> str:
    text = f"model {line['model']}"
    if not line.get("version"):
        return f"{text} was not resolved to a version"
    text += f" -> {line['version']} ({line.get('arm', 'stable')}"
    for name in ("arm_reason", "rollout"):
        if line.get(name):
            text += f", {line[name]}"
    attempts = line.get("attempt", 0)
    return text + f"), sent to a replica {attempts} time{'' if attempts == 1 else 's'}"


def _degraded(line: Mapping[str, Any]) -> str:
    kind, _, what = line["degraded"].partition("=")
    if kind == "fallback":
        answered = line.get("status", 200) < 400
        return f"{'answered by' if answered else 'sent to'} the fallback {what}"
    return f"capped: {line['degraded']}"


def _time(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def _ending(line: Mapping[str, Any]) -> str:
    code, reason = line.get("code", "ok"), line.get("reason")
    text = f"answered {line.get('status', '?')} {code}"
    if reason:
        text += f" because of {reason}"
    if line.get("would_refuse"):
        text += f" (shadow mode: {line['would_refuse']} would have refused it)"
    if line.get("ttft_ms") is not None:
        text += f", {line['ttft_ms']:.0f} ms to the first token"
    text += f", {line.get('duration_ms', 0.0):.0f} ms in all"
    if line.get("finish_reason"):
        text += f", finished by {line['finish_reason']}"
    return text


def _tokens(line: Mapping[str, Any]) -> str:
    counts = {name: line.get(f"{name}_tokens", 0) for name in ("input", "output", "cached")}
    text = ""
    if any(counts.values()):
        text = f"{counts['input']} tokens in ({counts['cached']} cached), {counts['output']} out"
    quota = [
        f"{line[name]} {name.replace('_', ' ')}"
        for name in ("reserved_tokens", "settled_tokens")
        if line.get(name) is not None
    ]
    return ", ".join(part for part in (text, *quota) if part)


def _in_file(path: Path, request_id: str) -> list[dict[str, Any]]:
    """Looks for the bytes and parses only the lines that hold them: a file may be 64 MiB."""
    mark = f'"request_id": {json.dumps(request_id)}'.encode()
    found: list[dict[str, Any]] = []
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            at = text.find(mark)
            while at >= 0 and len(found) < MAX_LINES:
                begin = text.rfind(b"\n", 0, at) + 1
                end = text.find(b"\n", at)
                end = len(text) if end < 0 else end
                line = _parsed(text[begin:end])
                if line is not None and line.get("request_id") == request_id:
                    found.append(line)
                at = text.find(mark, end)
    except (OSError, ValueError):
        return found  # rotated away, or emptied, while it was looked at
    return found


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None  # the last line of a process that was killed
    return line if isinstance(line, dict) else None


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
