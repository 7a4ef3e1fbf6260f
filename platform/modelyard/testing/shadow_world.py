"""An ingress in memory whose alias `chat` has a rollout, with shadow traffic and a judge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final

from modelyard.config.table import parse_table
from modelyard.contract.envelope import Answer, Envelope, Item, Usage
from modelyard.contract.operations import Kind, Operation
from modelyard.control.published import Published
from modelyard.ingress.judge import Judge
from modelyard.ingress.judge_hook import JudgeHook
from modelyard.ingress.prepared import Ask, Prepared
from modelyard.ingress.shadow import Shadow
from modelyard.ingress.shadow_call import ShadowCalls
from modelyard.rollout.outcome import Judgement, Outcome
from modelyard.routing.pool import Cell
from modelyard.telemetry.request_log import RequestRecord
from modelyard.testing.in_memory import ALPHA_KEY, SECRET, InMemoryIngress, post, table_record
from modelyard.testing.scripted_transport import Call, ScriptedTransport, Step

STABLE: Final = "gen@1.0.0"
CANDIDATE: Final = "gen@2.0.0"
JUDGE: Final = "judge@1.0.0"
ROLLOUT: Final = "r-1"


class ByVersion(ScriptedTransport):
    """Every call of a version plays that version's script; `calls` records all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: dict[str, Sequence[Step]] = {}

    def stream(self, cell: Cell, envelope: Envelope) -> AsyncGenerator[Answer]:
        one = ScriptedTransport(self.scripts[envelope.version])
        one.calls = self.calls
        return one.stream(cell, envelope)

    def calls_of(self, version: str) -> list[Call]:
        return [call for call in self.calls if call.envelope.version == version]


def chat_answer(text: str, output_tokens: int = 2) -> Item:
    """The whole answer of a chat."""
    record = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
    return Item(json.dumps(record).encode(), 0, Usage(7, output_tokens))


def chat_chunk(text: str, *, last: bool = False) -> Item:
    record = {"choices": [{"index": 0, "delta": {"content": text}}]}
    data = f"data: {json.dumps(record)}\n\n".encode()
    return Item(data, 1, Usage(7, 2) if last else None)


class ShadowWorld:
    """On the running loop's clock. `copies` is the log of what no user asked for."""

    def __init__(
        self,
        stable: Sequence[Step],
        candidate: Sequence[Step],
        *,
        judge: Sequence[Step] = (),
        percent: float = 100.0,
        weight: float | None = None,
        slots: int = 24,
        plan: dict[str, Any] | None = None,
        overload: dict[str, Any] | None = None,
        judged: bool = True,
    ) -> None:
        """weight: None while control has published copies only."""
        now = asyncio.get_running_loop().time
        self.transport = ByVersion()
        self.transport.scripts = {STABLE: stable, CANDIDATE: candidate, JUDGE: judge}
        table = _table({"id": ROLLOUT} | (plan or {}), overload or {}, judged=judged)
        self.ingress = InMemoryIngress(transport=self.transport, table=parse_table(table), now=now)
        self.pipeline = self.ingress.pipeline
        self.set_ready(STABLE, CANDIDATE, JUDGE, slots=slots)
        self.copies: list[RequestRecord] = []
        calls = ShadowCalls(self.pipeline, self.transport, SECRET, self.copies.append)
        self.hook = JudgeHook()
        self.judge = Judge(self.pipeline, calls, self.hook)
        self.shadow = Shadow(self.pipeline, calls, self.judge)
        self.pipeline.observers = (self.shadow, self.judge)
        self.publish(percent, weight)

    def set_ready(self, *versions: str, slots: int = 24) -> None:
        posts = [post(version, Kind.GENERATOR, slots=slots) for version in versions]
        self.ingress.fleet.update(posts)

    def publish(self, percent: float, weight: float | None = None) -> None:
        weights = () if weight is None else ((ROLLOUT, weight),)
        shadows = ((ROLLOUT, percent),) if percent else ()
        order = self.pipeline.in_force.order
        self.pipeline.obey(Published(1, order[1] + 1, weights=weights, shadows=shadows))

    def request(
        self,
        *,
        key: str = ALPHA_KEY,
        request_id: str = "q",
        headers: dict[str, str] | None = None,
        **body: Any,
    ) -> Prepared:
        """A chat that is prepared. Each request id is a conversation of its own."""
        messages = [{"role": "user", "content": f"a private question of {request_id}"}]
        ask = Ask(
            Operation.CHAT,
            "/v1/chat/completions",
            f"Bearer {key}",
            headers or {},
            request_id,
            self.pipeline.now(),
        )
        record = self.pipeline.books.open_record(ask)
        caller = self.pipeline.require_key(ask.authorization, "invoke")
        record.called_by(caller.claim)
        asked = {"model": "chat", "messages": messages} | body
        return self.pipeline.prepare(ask, caller, asked, record)

    async def ask(self, **request: Any) -> list[Item]:
        """The items that a user gets."""
        return await self.answered(self.request(**request))

    async def answered(self, prepared: Prepared) -> list[Item]:
        if not prepared.work.stream:
            return [await self.pipeline.call(prepared)]
        async with aclosing(self.pipeline.stream(prepared)) as items:
            return [item async for item in items]

    def pairs(self) -> list[Outcome]:
        """The outcomes that belong to a pair, the stable one before its copy's."""
        return [one for one in self._outcomes() if one.pair]

    def judgements(self) -> list[Judgement]:
        batches = self.pipeline.outcomes.batches(self.pipeline.now() + 1)
        return [one for batch in batches for one in batch.judgements]

    def _outcomes(self) -> list[Outcome]:
        batches = self.pipeline.outcomes.batches(self.pipeline.now() + 1)
        return [one for batch in batches for one in batch.outcomes]


async def settle() -> None:
    """Until what runs beside the requests has come to rest, or waits for a timer."""
    for _ in range(20):
        await asyncio.sleep(0)


def _table(plan: dict[str, Any], overload: dict[str, Any], *, judged: bool) -> dict[str, Any]:
    record, versions = table_record(), {"stable": STABLE, "canary": CANDIDATE}
    record["routes"]["chat"] = versions | {"rollout": plan, "overload": overload}
    record["routes"]["judge"] = {"stable": JUDGE}
    record["tenants"]["alpha"]["judged"] = judged
    record["tenants"]["beta"]["models"] = ["*"]
    return record
