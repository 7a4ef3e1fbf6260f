"""A judge that is a model of this platform, asked for a yes or a no."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any, Final

from modelyard.config.routes import Deadlines
from modelyard.contract.envelope import Envelope
from modelyard.contract.errors import RequestError
from modelyard.contract.operations import Operation
from modelyard.ingress.answer_text import text_of
from modelyard.ingress.judge_prompt import messages_of
from modelyard.ingress.judge_question import NoVerdict, Question
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.shadow_call import SHADOW, ShadowCalls, plain_route
from modelyard.ingress.work import make_work
from modelyard.routing.affinity import affinity_key
from modelyard.tenancy.claim import Claim

JUDGE: Final = "judge"  # in the request log: the key that asks, and the purpose
MAX_TOKENS: Final = 8  # a yes or a no, and what little stands around it
LOOK_EACH_S: Final = 0.25
# What a model may put around its one word.
_AROUND: Final = " \t\r\n.!\"'`*"
_WORDS: Final = {"yes": True, "no": False}


class JudgeModel:
    """Asks in the tenant's name: its prompts stay in its region, its cells and its own cache."""

    def __init__(self, pipeline: Pipeline, calls: ShadowCalls) -> None:
        self._pipeline = pipeline
        self._calls = calls

    async def is_good(self, alias: str, question: Question, claim: Claim, within_s: float) -> bool:
        """claim: of the tenant whose answer it is. Raises NoVerdict."""
        parts: list[bytes] = []
        try:
            prepared = self._prepared(alias, question, claim, within_s)
            # Not in the queue: even at its end it would count for those who wait there.
            while not self._calls.has_room(prepared):  # noqa: ASYNC110  nothing rings outside it
                await asyncio.sleep(LOOK_EACH_S)
            await self._calls.answer(prepared, lambda item: parts.append(item.data))
        except RequestError as error:
            raise NoVerdict(f"the model {alias} gave no answer: {error.code}") from None
        try:
            return verdict_of(text_of(Operation.CHAT, b"".join(parts), stream=False))
        except ValueError:
            raise NoVerdict(f"the answer of the model {alias} cannot be read") from None

    def _prepared(self, alias: str, question: Question, claim: Claim, within_s: float) -> Prepared:
        pipeline, table = self._pipeline, self._pipeline.the_table()
        caller = self._calls.caller(
            replace(
                claim,
                key_id=JUDGE,
                roles=("invoke",),
                models=(alias,),
                arms=("stable",),
                max_context_tokens=None,
                features=None,
            )
        )
        target = pipeline.router.target(alias, Operation.CHAT, caller, table, "")
        target = replace(target, route=plain_route(target.route))
        body = _body(question)
        work = make_work(Operation.CHAT, dict(body), target.route.limits, target.description)
        request_id = f"{JUDGE}_{random.getrandbits(96):024x}"
        envelope = Envelope(
            claim=caller.token,
            version=target.version,
            operation=Operation.CHAT,
            body=work.encoded,
            stream=False,
            budget_ms=0,
            band=SHADOW,
            request_id=request_id,
            answer_id=request_id,
            model_alias=alias,
            arm=target.arm,
            affinity=affinity_key(Operation.CHAT, body, target.version, claim.tenant, ""),
        )
        record = self._calls.record(caller.claim, request_id, f"internal/{JUDGE}", JUDGE)
        record.model, record.version, record.arm = alias, target.version, target.arm
        record.answer_id = request_id
        deadlines = Deadlines(first_token_s=within_s, idle_s=within_s, total_s=within_s)
        return Prepared(caller, target, work, envelope, record, pipeline.now(), deadlines)


def verdict_of(text: str) -> bool:
    """Strictly one of two words: whoever explains itself has not understood what it was asked."""
    verdict = _WORDS.get(text.strip(_AROUND).lower())
    if verdict is None:
        raise NoVerdict("the model said neither yes nor no")
    return verdict


def _body(question: Question) -> dict[str, Any]:
    return {
        "messages": messages_of(question),
        "temperature": 0,
        "max_completion_tokens": MAX_TOKENS,
    }
