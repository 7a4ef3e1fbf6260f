"""One question for each kind of model: what `modelyard up` asks the starter models, and the curl
lines it prints."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx

from modelyard.contract.errors import ModelyardError
from modelyard.contract.operations import Kind


class NoAnswer(ModelyardError):
    """A model did not answer its question."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request to one alias, and how to show its answer in a line."""

    alias: str
    path: str
    body: dict[str, Any]
    show: Callable[[dict[str, Any]], str]

    def ask(self, client: httpx.Client) -> str:
        """The answer in a line, or that the model sleeps at zero replicas. Raises NoAnswer."""
        try:
            answer = client.post(self.path, json=self.body)
        except httpx.HTTPError as error:
            raise NoAnswer(f"{self.alias} did not answer: {error}") from error
        if answer.status_code == 503 and '"not_loaded"' in answer.text:
            # Only at min_replicas 0: `up` has waited for all others.
            wait_s = answer.headers.get("retry-after", "some")
            return f"at zero replicas, and woken by this question: ask again in {wait_s} s"
        if answer.status_code != 200:
            raise NoAnswer(f"{self.alias} answered {answer.status_code}: {answer.text[:300]}")
        try:
            return self.show(answer.json())
        except (ValueError, LookupError, TypeError) as error:
            raise NoAnswer(
                f"{self.alias} answered something else than modelyard does, so another server may "
                f"hold its port: {answer.text[:300]!r}"
            ) from error

    def curl(self, url: str, key: str) -> str:
        return (
            f"curl -s {url}{self.path} -H 'Authorization: Bearer {key}' "
            f"-H 'Content-Type: application/json' \\\n  -d {shlex.quote(json.dumps(self.body))}"
        )


_PASSAGES: Final = [
    "Refunds for duplicate charges are paid within five working days.",
    "Parcels leave our warehouse on weekdays before noon.",
    "Reset your password from the sign-in page.",
]


def _embedding(answer: dict[str, Any]) -> str:
    vector = answer["data"][0]["embedding"]
    return f"{len(vector)} numbers: {vector[0]:.3f} {vector[1]:.3f} {vector[2]:.3f} ..."


def _label(answer: dict[str, Any]) -> str:
    best = answer["data"][0]
    return f"{best['label']} ({max(best['probs']):.2f})"


def _best_passage(answer: dict[str, Any]) -> str:
    best = answer["results"][0]
    return f"{_PASSAGES[best['index']]} ({best['relevance_score']:.2f})"


QUESTIONS: Final = (
    Question(
        "support-assistant",
        "/v1/chat/completions",
        {
            "model": "support-assistant",
            "messages": [{"role": "user", "content": "What is the capital of France?"}],
            "temperature": 0,
        },
        lambda answer: str(answer["choices"][0]["message"]["content"]),
    ),
    Question(
        "support-embed",
        "/v1/embeddings",
        {"model": "support-embed", "input": "How do I get a refund?"},
        _embedding,
    ),
    Question(
        "support-intent",
        "/v1/classify",
        {"model": "support-intent", "input": "Where is my parcel? It should be here by now."},
        _label,
    ),
    Question(
        "support-rerank",
        "/v1/rerank",
        {"model": "support-rerank", "query": "I was charged twice", "documents": _PASSAGES},
        _best_passage,
    ),
)
_OF_KIND: Final = dict(
    zip((Kind.GENERATOR, Kind.EMBEDDER, Kind.CLASSIFIER, Kind.RERANKER), QUESTIONS, strict=True)
)


def questions_of_others(client: httpx.Client) -> list[Question]:
    """One for each alias that the client's key sees and no starter model has, by its kind.

    None for a version that was never loaded, whose kind nobody knows, nor when the list cannot be
    had: these lines are a help, and no reason for `up` to fail.
    """
    try:
        listed = client.get("/v1/models").raise_for_status().json()["data"]
        kinds = {one["id"]: Kind(one["kind"]) for one in listed if one["kind"] is not None}
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return []
    starters = {question.alias for question in QUESTIONS}
    return [
        replace(_OF_KIND[kind], alias=alias, body=_OF_KIND[kind].body | {"model": alias})
        for alias, kind in sorted(kinds.items())
        if alias not in starters
    ]
