"""The formats by route."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from modelyard.bench.wire.native import Generate
from modelyard.bench.wire.openai import Chat, Completions, Responses
from modelyard.bench.wire.reading import Reading
from modelyard.bench.wire.small import Classify, Embeddings, Rerank, Score
from modelyard.bench.wire.sse import Event
from modelyard.bench.wire.texts import Texts
from modelyard.workload.mix import RouteName
from modelyard.workload.plan import Planned


class Format(Protocol):
    path: str

    def body(self, planned: Planned, texts: Texts) -> dict[str, Any]: ...

    def event(self, event: Event, reading: Reading) -> bool:
        """Take one event of a stream; whether it held content. Raises ValueError for no JSON."""
        ...


FORMATS: Final[Mapping[RouteName, Format]] = {
    "generate": Generate(),
    "chat": Chat(),
    "completions": Completions(),
    "responses": Responses(),
    "embeddings": Embeddings(),
    "rerank": Rerank(),
    "classify": Classify(),
    "score": Score(),
}


def encoded(planned: Planned, texts: Texts) -> bytes:
    """The request's body. A null in extra_body takes the field out."""
    stream = planned.stream
    body = {"model": stream.model, **FORMATS[stream.route].body(planned, texts)}
    body |= stream.extra_body
    kept = {name: value for name, value in body.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False).encode()


def read_whole(body: bytes) -> Reading:
    """A unary answer. Raises ValueError when it is no JSON object."""
    record = json.loads(body)
    if not isinstance(record, dict):
        raise ValueError("no JSON object")
    reading = Reading(ended=True)
    reading.usage(record.get("usage"))
    if "error" in record and record["error"] is not None:  # Responses answers hold error: null
        reading.fail(record)
    return reading
