"""The request log: one JSON line a request, metadata only, never a prompt or an answer."""

from __future__ import annotations

import json
import logging
import logging.handlers
import threading
from collections import deque
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from modelyard.telemetry.trace import Trace
    from modelyard.tenancy.claim import Claim

MAX_BYTES: Final = 64 * 1024 * 1024
BACKUPS: Final = 4
MAX_LINES_AT_ONCE: Final = 1000
WRITE_EACH_S: Final = 0.1


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
    arm_reason: str = ""  # why this arm, where there was a choice
    rollout: str = ""
    conversation: str = ""  # a hash: it joins the turns of a conversation and names nobody
    label: str = ""  # of X-Traffic-Label, where the rollout's plan declares it
    pair: str = ""  # of a shadow copy: joins it with the request that it copies
    purpose: str = ""  # feedback: no request of a model, so no usage and no outcome
    answer_id: str = ""
    stream: bool = False
    status: int = 0
    code: str = "ok"
    reason: str = ""
    refused_by: str = ""  # the version, where its replica and not the ingress answered a 4xx
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reserved_tokens: int | None = None  # of the tenant's quota; None where it has none
    settled_tokens: int | None = None
    would_refuse: str = ""  # the reason, of a tenant whose quota is in shadow mode
    finish_reason: str = ""
    queued_ms: float | None = None  # of a request that had to wait for a slot
    degraded: str = ""  # what was made smaller because too much waited
    ttft_ms: float | None = None
    duration_ms: float = 0.0
    attempt: int = 0
    traceparent: str | None = None
    ignored_fields: tuple[str, ...] = field(default=())
    trace: Trace | None = field(default=None, repr=False, compare=False)  # never logged

    def ended(self, status: int, code: str, reason: str) -> None:
        self.status, self.code = status, code
        self.reason = reason if reason != code else ""

    def called_by(self, claim: Claim) -> None:
        self.tenant, self.key_id, self.tier = claim.tenant, claim.key_id, claim.tier

    def enter(self, stage: str) -> None:
        """A stage of the data path begins. Costs a test where the request is not traced."""
        if self.trace is not None:
            self.trace.enter(stage)

    def line(self) -> str:
        # Not asdict: its deep copies cost more than everything else that is done for a record.
        record: dict[str, Any] = {
            name: value for name in _NAMES if (value := getattr(self, name)) not in ("", None, ())
        }
        return _ENCODER.encode(record)


_NAMES: Final = tuple(one.name for one in fields(RequestRecord) if one.name != "trace")
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


class RequestLog:
    """Appends records to a rotating file on a thread of its own: the loop never waits for a disk.

    The thread looks ten times a second. Waking it for each line, as logging's QueueListener does,
    costs the loop more than all the rest of a request's books; a kill loses a tenth of a second.

    One file per process, because two processes that rotate one file lose lines.
    """

    def __init__(self, folder: Path, process: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"requests-{process}.jsonl"
        handler = logging.handlers.RotatingFileHandler(
            self.path, maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8", delay=True
        )
        self._handler = handler
        self._lines: deque[str] = deque()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="request-log", daemon=True)
        self._thread.start()

    def write(self, record: RequestRecord) -> None:
        self._lines.append(record.line())

    def close(self) -> None:
        """Write what is queued and stop. Closing twice is harmless."""
        self._stop.set()
        self._thread.join()
        self._handler.close()

    def _run(self) -> None:
        while not self._stop.wait(WRITE_EACH_S):
            self._drain()
        self._drain()

    def _drain(self) -> None:
        while self._lines:
            count = min(len(self._lines), MAX_LINES_AT_ONCE)
            text = "\n".join(self._lines.popleft() for _ in range(count))
            self._handler.emit(logging.LogRecord("requests", logging.INFO, "", 0, text, None, None))
