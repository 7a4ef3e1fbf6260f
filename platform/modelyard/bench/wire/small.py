"""The routes of small models: one body in, one body out."""

from __future__ import annotations

from typing import Any

from modelyard.bench.wire.reading import Reading
from modelyard.bench.wire.sse import Event
from modelyard.bench.wire.texts import Texts
from modelyard.workload.plan import Planned


class _Unary:
    def event(self, event: Event, reading: Reading) -> bool:
        """Such a route streams nothing."""
        return False


class _Inputs(_Unary):
    """`items` texts, alone where it is one."""

    def body(self, planned: Planned, texts: Texts) -> dict[str, Any]:
        every = texts.of(planned.number, [planned.input_tokens] * planned.stream.items)
        return {"input": every[0] if len(every) == 1 else every}


class Embeddings(_Inputs):
    path = "/v1/embeddings"


class Classify(_Inputs):
    path = "/classify"


class Rerank(_Unary):
    path = "/v1/rerank"

    def body(self, planned: Planned, texts: Texts) -> dict[str, Any]:
        query, documents = _query_and_documents(planned, texts)
        return {"query": query, "documents": documents}


class Score(_Unary):
    path = "/score"

    def body(self, planned: Planned, texts: Texts) -> dict[str, Any]:
        query, documents = _query_and_documents(planned, texts)
        return {"text_1": query, "text_2": documents}


QUERY_TOKENS = 12


def _query_and_documents(planned: Planned, texts: Texts) -> tuple[str, list[str]]:
    """input_tokens is the length of a document; a query is short."""
    sizes = [QUERY_TOKENS, *[planned.input_tokens] * planned.stream.items]
    query, *documents = texts.of(planned.number, sizes)
    return query, documents
