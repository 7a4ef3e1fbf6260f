"""The door: what a handle can name on a model's deployment, and nothing else."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import pytest

from deployments import classifier, embedder, generator, reranker
from deployments.door import Door, deployment_of
from deployments.shell import Shell
from modelyard.contract.envelope import Envelope, Failure, Item, Usage
from modelyard.contract.operations import DEPLOYMENT_OF, Kind
from modelyard.lifecycle.observed import Observed
from modelyard.lifecycle.questions import Question
from modelyard.lifecycle.watchdog import Evidence
from modelyard.telemetry.exposition import Scrape
from modelyard.telemetry.process_metrics import ProcessMetrics
from modelyard.tenancy.claim import Claim, sign

SECRET = b"a signing key for tests only: 32+"
CALLER = Claim("demo", "demo-1", "paid", "eu", "interactive", ("invoke",), ("*",))
LAST = Item(b"{}", 0, Usage(1, 0))


class Echo(Shell):
    """A shell without a model."""

    KIND = Kind.EMBEDDER

    async def load(self) -> None: ...

    async def warm(self) -> None: ...

    async def observe(self, question: Question) -> Observed:
        raise NotImplementedError

    def evidence(self) -> Evidence:
        return Evidence(self.progress.steps, busy=False)

    async def answer(self, envelope: Envelope) -> Item:
        return LAST


def door_to(shell: Shell) -> Door:
    door = object.__new__(Door)
    door._shell = shell
    return door


@pytest.fixture
def door() -> Door:
    shell = Echo(None)
    shell._secret, shell._app = SECRET, "emb@1"

    class Manifest:
        full_name = "emb@1"

    shell.manifest = Manifest()  # type: ignore[assignment]
    return door_to(shell)


def envelope(**changes: Any) -> Envelope:
    fields: dict[str, Any] = {
        "claim": sign(CALLER, SECRET),
        "version": "emb@1",
        "operation": "embed",
        "body": b"{}",
        "stream": False,
        "budget_ms": 1000,
        "band": "interactive",
        "request_id": "r",
        "answer_id": "a",
        "model_alias": "m",
    }
    return Envelope(**(fields | changes))


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (generator, Kind.GENERATOR),
        (embedder, Kind.EMBEDDER),
        (classifier, Kind.CLASSIFIER),
        (reranker, Kind.RERANKER),
    ],
)
def test_a_handle_can_name_five_methods_and_no_call_dunder(module: Any, kind: Kind) -> None:
    made = module.deployment
    assert made.name == DEPLOYMENT_OF[kind]
    door: Any = made.func_or_class
    named = {
        name
        for name, value in inspect.getmembers(door)
        if callable(value) and not (name.startswith("__") and name.endswith("__"))
    }
    assert named == {"call", "stream", "scrape", "check_health", "reconfigure", "SHELL"}
    assert door.SHELL.KIND is kind
    assert "__call__" not in vars(door)
    assert 0 < made.max_ongoing_requests < 1000


async def test_a_claimed_call_is_answered_on_both_doors(door: Door) -> None:
    assert await door.call(envelope()) == LAST
    assert [item async for item in door.stream(envelope())] == [LAST]


@pytest.mark.parametrize(
    ("stray", "code"),
    [
        (envelope(claim=""), "unauthenticated"),
        (envelope(claim=sign(CALLER, b"another key, of at least 32 bytes")), "unauthenticated"),
        (envelope(version="emb@2"), "invalid_request"),
        (envelope(operation="chat"), "invalid_request"),
        (envelope(operation="nonsense"), "invalid_request"),
        (envelope(arm="canary"), "forbidden"),
        (envelope(claim=sign(replace(CALLER, models=("b",)), SECRET)), "forbidden"),
        (envelope(claim=sign(replace(CALLER, models=()), SECRET), model_alias="*"), "forbidden"),
        (envelope(budget_ms=0), "deadline_exceeded"),
        (envelope(budget_ms=-5), "deadline_exceeded"),
        (None, "unauthenticated"),
        ("text", "unauthenticated"),
    ],
)
async def test_a_stray_is_refused_on_both_doors_and_leaves_no_count(
    door: Door, stray: Any, code: str
) -> None:
    answers = [await door.call(stray), *[item async for item in door.stream(stray)]]
    assert [answer.code for answer in answers if isinstance(answer, Failure)] == [code, code]
    assert door._shell._ongoing == 0


async def test_metrics_want_a_claim_with_the_role(door: Door) -> None:
    door._shell._metrics = ProcessMetrics("emb@1", "r1", SECRET, *door._shell.collectors())
    refused = await door.scrape(sign(CALLER, SECRET))
    assert isinstance(refused, Failure)
    assert refused.code == "forbidden"
    scrape = await door.scrape(sign(replace(CALLER, roles=("scrape",)), SECRET))
    assert isinstance(scrape, Scrape)
    assert "modelyard_sequences_active 0.0" in scrape.text


def test_the_class_of_a_deployment_is_named_after_its_kind() -> None:
    assert deployment_of(Echo, max_ongoing_requests=3).name == "Embedder"
