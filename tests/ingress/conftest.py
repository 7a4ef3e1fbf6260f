"""The bodies and answers that tests of the data path share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from modelyard.contract.envelope import Item, Usage
from modelyard.contract.operations import Operation
from modelyard.ingress.app import ROUTES
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Ask, Prepared
from modelyard.testing.in_memory import ALPHA_KEY, InMemoryIngress
from modelyard.testing.scripted_transport import Step

PROMPT = "a very private prompt"
ANSWER = "a very private answer"


@pytest.fixture
def first() -> Item:
    return Item(f"data: {ANSWER} 1\n\n".encode(), 1)


@pytest.fixture
def last() -> Item:
    return Item(f"data: {ANSWER} 2\n\n".encode(), 1, Usage(7, 2, "length", 3))


@pytest.fixture
def unary() -> Item:
    return Item(f'{{"answer": "{ANSWER}"}}'.encode(), 0, Usage(7, 2))


@pytest.fixture
def body_for() -> Callable[..., dict[str, Any]]:
    return _body_for


def _body_for(operation: Operation, **changes: Any) -> dict[str, Any]:
    """The smallest body of an operation, with a prompt in it that no log may hold."""
    messages = [{"role": "user", "content": PROMPT}]
    records: dict[Operation, dict[str, Any]] = {
        Operation.GENERATE: {
            "model": "chat",
            "conversation_id": "c-1",
            "messages": messages,
            "max_output_tokens": 16,
        },
        Operation.CHAT: {"model": "chat", "messages": messages},
        Operation.COMPLETIONS: {"model": "chat", "prompt": PROMPT},
        Operation.RESPONSES: {"model": "chat", "input": PROMPT},
        Operation.EMBED: {"model": "team/embed", "input": PROMPT},
        Operation.CLASSIFY: {"model": "intent", "input": PROMPT},
        Operation.RERANK: {"model": "rerank", "query": PROMPT, "documents": [PROMPT]},
        Operation.SCORE: {"model": "rerank", "text_1": PROMPT, "text_2": PROMPT},
    }
    return records[operation] | changes


@pytest.fixture
def ingress_at() -> Callable[..., InMemoryIngress]:
    """An ingress on the running loop's clock, which may be a virtual one."""

    def make(*scripts: list[Step], **options: Any) -> InMemoryIngress:
        return InMemoryIngress(*scripts, now=asyncio.get_running_loop().time, **options)

    return make


@pytest.fixture
def prepare() -> Callable[..., Prepared]:
    """A request taken through everything before the dispatch."""

    def make(
        pipeline: Pipeline,
        operation: Operation = Operation.CHAT,
        *,
        key: str = ALPHA_KEY,
        headers: dict[str, str] | None = None,
        **changes: Any,
    ) -> Prepared:
        route = next(path for path, one in ROUTES if one is operation)
        ask = Ask(operation, route, f"Bearer {key}", headers or {}, "r-1", pipeline.now())
        record = pipeline.books.open_record(ask)
        caller = pipeline.require_key(ask.authorization, "invoke")
        record.called_by(caller.claim)
        return pipeline.prepare(ask, caller, _body_for(operation, **changes), record)

    return make
