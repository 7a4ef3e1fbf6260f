"""Answers of the small models, as bytes: OpenAI's, Cohere's and vLLM's shapes."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic_core import to_json

_API_VERSION: Final = "2"  # Cohere's; its clients only show it
_DOCUMENTS_PER_SEARCH_UNIT: Final = 100  # Cohere's unit


@dataclass(frozen=True, slots=True)
class Head:
    """What every answer carries. model: as the caller wrote it. created_s: Unix seconds."""

    id: str
    model: str
    created_s: int
    prompt_tokens: int

    @property
    def usage(self) -> dict[str, int]:
        return {"prompt_tokens": self.prompt_tokens, "total_tokens": self.prompt_tokens}


def embeddings(
    head: Head, vectors: Sequence[Sequence[float]], encoding: Literal["float", "base64"]
) -> bytes:
    """OpenAI's list of embeddings; base64 is little-endian float32."""
    # One call per vector: a thousand of them are 15 MB of digits, and a C call that writes all of
    # it never lets another thread have the interpreter. pydantic's writer is 3 times json's speed.
    write = to_json if encoding == "float" else _base64
    data = b",".join(
        b'{"object":"embedding","index":%d,"embedding":%b}' % (index, write(vector))
        for index, vector in enumerate(vectors)
    )
    rest = _dump({"object": "list", "id": head.id, "model": head.model, "usage": head.usage})
    return rest[:-1] + b',"data":[' + data + b"]}"


def rerank(
    head: Head,
    scores: Sequence[float],
    documents: Sequence[str],
    top_n: int | None,
    *,
    return_documents: bool,
) -> bytes:
    """Best first, ties by index. top_n beyond the documents, 0 or None: all of them."""
    order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))
    results: list[dict[str, Any]] = []
    for index in order[: top_n or None]:
        result: dict[str, Any] = {"index": index, "relevance_score": scores[index]}
        if return_documents:
            result["document"] = {"text": documents[index]}
        results.append(result)
    units = -(-len(documents) // _DOCUMENTS_PER_SEARCH_UNIT)
    return _dump(
        {
            "id": head.id,
            "model": head.model,
            "results": results,
            "usage": head.usage,
            "meta": {
                "api_version": {"version": _API_VERSION},
                "billed_units": {"search_units": units},
            },
        }
    )


def score(head: Head, scores: Sequence[float]) -> bytes:
    data = [
        {"index": index, "object": "score", "score": value} for index, value in enumerate(scores)
    ]
    return _dump(_list(head, data))


def classify(head: Head, probabilities: Sequence[Sequence[float]], labels: Sequence[str]) -> bytes:
    """label is the most probable; probs are in the order of the model's labels."""
    data = [
        {
            "index": index,
            "label": labels[max(range(len(row)), key=row.__getitem__)],
            "probs": list(row),
            "num_classes": len(row),
        }
        for index, row in enumerate(probabilities)
    ]
    return _dump(_list(head, data))


def _list(head: Head, data: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": head.id,
        "object": "list",
        "created": head.created_s,
        "model": head.model,
        "data": data,
        "usage": head.usage,
    }


def _base64(vector: Sequence[float]) -> bytes:
    return b'"' + base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)) + b'"'


def _dump(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
