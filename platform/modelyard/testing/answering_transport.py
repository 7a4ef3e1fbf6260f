"""A Transport that answers whatever it is asked: for tests of what never reaches a replica."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, Final

from modelyard.contract.envelope import Answer, Envelope, Item, Usage
from modelyard.contract.operations import Operation
from modelyard.routing.pool import Cell
from modelyard.testing.scripted_transport import Call, End, ScriptedTransport

USAGE: Final = Usage(1, 1)
_CHOICE: Final = {"index": 0, "message": {"role": "assistant", "content": "yes"}, "text": "yes"}
_RECORDS: Final[dict[Operation, dict[str, Any]]] = {
    Operation.GENERATE: {
        "id": "a-1",
        "model_version": "gen@1.0.0",
        "output": "yes",
        "finish_reason": "stop",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    Operation.CHAT: {"choices": [_CHOICE]},
    Operation.COMPLETIONS: {"choices": [_CHOICE]},
    Operation.RESPONSES: {"id": "resp_1", "status": "completed", "output": []},
    Operation.EMBED: {"data": [{"index": 0, "embedding": [0.0]}]},
    Operation.CLASSIFY: {"data": [{"index": 0, "label": "yes", "probs": [1.0]}]},
    Operation.RERANK: {"results": [{"index": 0, "relevance_score": 1.0}]},
    Operation.SCORE: {"data": [{"index": 0, "score": 1.0}]},
}


class AnsweringTransport(ScriptedTransport):
    """Gives every call one whole answer of its operation's shape; `calls` records them."""

    async def call(self, cell: Cell, envelope: Envelope) -> Answer:
        self.calls.append(Call(cell, envelope, 1, End.COMPLETE))
        return Item(json.dumps(_RECORDS[Operation(envelope.operation)]).encode(), 0, USAGE)

    async def stream(self, cell: Cell, envelope: Envelope) -> AsyncGenerator[Answer]:
        self.calls.append(Call(cell, envelope, 1, End.COMPLETE))
        yield Item(b'data: {"choices": []}\n\n', 1, USAGE)
