"""POST /v1/generate, this platform's own."""

from __future__ import annotations

import json
from typing import Any

from modelyard.bench.wire.reading import Reading
from modelyard.bench.wire.sse import Event
from modelyard.bench.wire.texts import Texts
from modelyard.workload.plan import Planned


class Generate:
    path = "/v1/generate"

    def body(self, planned: Planned, texts: Texts) -> dict[str, Any]:
        body = {
            "conversation_id": f"bench-{planned.stream.name}-{planned.number}",
            "messages": messages(planned, texts),
            "max_output_tokens": planned.output_tokens,
            "stream": planned.stream.stream,
        }
        if planned.stream.deadline_ms is not None:
            body["deadline_ms"] = planned.stream.deadline_ms
        return body

    def event(self, event: Event, reading: Reading) -> bool:
        record = json.loads(event.data)
        if event.name == "delta":
            return bool(record.get("text"))
        if event.name == "done":
            reading.usage(record.get("usage"))
            reading.ended = True
        elif event.name == "error":
            reading.fail(record)
        return False


def messages(planned: Planned, texts: Texts) -> list[dict[str, str]]:
    """What every request shares is the system's message, the rest is the user's."""
    shared = planned.stream.shared_prefix_tokens
    (text,) = texts.of(planned.number, [max(1, planned.input_tokens - shared)])
    system = [{"role": "system", "content": texts.prefix(shared)}] if shared else []
    return [*system, {"role": "user", "content": text}]
