"""The request log: one JSON line a request, metadata only, never a prompt or an answer."""

from __future__ import annotations

import json
import logging
import logging.handlers
import queue
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

MAX_BYTES: Final = 64 * 1024 * 1024
BACKUPS: Final = 4


@dataclass(slots=True)
class RequestRecord:
    """One request, filled in as it goes through the pipeline. Times in milliseconds."""

    ts: str
    request_id: str
    route: str
    tenant: str = ""
    key_id: str = ""
    tier: str = ""
    model: str = ""
    version: str = ""
    arm: str = ""
    answer_id: str = ""
    stream: bool = False
    status: int = 0
    code: str = "ok"
    reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    finish_reason: str = ""
    ttft_ms: float | None = None
    duration_ms: float = 0.0
    attempt: int = 0
    traceparent: str | None = None
    ignored_fields: tuple[str, ...] = field(default=())

    def line(self) -> str:
        record: dict[str, Any] = {
            name: value for name, value in asdict(self).items() if value not in ("", None, ())
        }
        return json.dumps(record, ensure_ascii=False)


class RequestLog:
    """Appends records to a rotating file on a thread of its own: the loop never waits for a disk.

    One file per process, because two processes that rotate one file lose lines.
    """

    def __init__(self, folder: Path, process: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"requests-{process}.jsonl"
        handler = logging.handlers.RotatingFileHandler(
            self.path, maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8", delay=True
        )
        handler.setFormatter(logging.Formatter("%(message)s"))
        lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        self._listener = logging.handlers.QueueListener(lines, handler)
        self._listener.start()
        self._queue = lines
        self._closed = False

    def write(self, record: RequestRecord) -> None:
        line = record.line()
        self._queue.put(logging.LogRecord("requests", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        """Write what is queued and stop. Closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        self._listener.stop()
        for handler in self._listener.handlers:
            handler.close()
