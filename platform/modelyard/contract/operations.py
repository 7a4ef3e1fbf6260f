"""What can be asked of a model, and which kind of model can answer it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    GENERATOR = "generator"
    EMBEDDER = "embedder"
    CLASSIFIER = "classifier"
    RERANKER = "reranker"


class Operation(StrEnum):
    GENERATE = "generate"
    CHAT = "chat"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    EMBED = "embed"
    CLASSIFY = "classify"
    RERANK = "rerank"
    SCORE = "score"


OPERATIONS_OF: Final[dict[Kind, tuple[Operation, ...]]] = {
    Kind.GENERATOR: (
        Operation.GENERATE,
        Operation.CHAT,
        Operation.COMPLETIONS,
        Operation.RESPONSES,
    ),
    Kind.EMBEDDER: (Operation.EMBED,),
    Kind.CLASSIFIER: (Operation.CLASSIFY,),
    Kind.RERANKER: (Operation.RERANK, Operation.SCORE),
}

KIND_OF: Final[dict[Operation, Kind]] = {
    operation: kind for kind, operations in OPERATIONS_OF.items() for operation in operations
}

# The name of the Serve deployment that answers for a kind.
DEPLOYMENT_OF: Final[dict[Kind, str]] = {
    Kind.GENERATOR: "Generator",
    Kind.EMBEDDER: "Embedder",
    Kind.CLASSIFIER: "Classifier",
    Kind.RERANKER: "Reranker",
}

ROUTE_OF: Final[dict[Operation, str]] = {
    Operation.GENERATE: "/v1/generate",
    Operation.CHAT: "/v1/chat/completions",
    Operation.COMPLETIONS: "/v1/completions",
    Operation.RESPONSES: "/v1/responses",
    Operation.EMBED: "/v1/embeddings",
    Operation.CLASSIFY: "/v1/classify",
    Operation.RERANK: "/v1/rerank",
    Operation.SCORE: "/v1/score",
}


def answers(kind: Kind, operation: Operation) -> bool:
    return operation in OPERATIONS_OF[kind]


def routes_for(kind: Kind) -> str:
    """The routes a caller should have used, for the message of a 400."""
    return " or ".join(ROUTE_OF[operation] for operation in OPERATIONS_OF[kind])
