"""The small models' shells, with the starter models and without Serve."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from deployments import classifier, embedder, reranker
from deployments.classifier import Classifier
from deployments.embedder import Embedder
from deployments.replica import Place
from deployments.reranker import Reranker
from deployments.self_tested import self_tested
from deployments.small import Small
from modelyard.artifacts.manifest import read_manifest
from modelyard.batching.batcher import Batcher
from modelyard.config.model_args import SmallModelArgs
from modelyard.config.tunables import BatchTunables
from modelyard.contract.envelope import Envelope, Item
from modelyard.contract.errors import ArtifactError, Failure
from modelyard.contract.operations import Operation
from modelyard.tenancy.claim import Claim, sign

AnyShell = TypeVar("AnyShell", bound=Small)
LONG = "order " * 400
PASSAGES = ["Bananas are yellow.", "To return a parcel, print the label.", "We open at nine."]


def shell_of(kind: type[AnyShell], folder: Path) -> AnyShell:
    """A shell as `start` leaves it after verifying; Serve's part of it is tested elsewhere."""
    shell = kind(SmallModelArgs(artifact=folder.as_uri()))
    shell.adopt(folder, read_manifest(folder), Place(cpus=1, gpus=0), b"s" * 32)
    return shell


def opened(kind: type[AnyShell], folder: Path) -> AnyShell:
    shell = shell_of(kind, folder)
    shell.open()
    return shell


@pytest.fixture(scope="module")
def open_embedder(starter_models: Path) -> Embedder:
    return opened(Embedder, starter_models / "all-minilm-l6-v2" / "1.0.0")


@pytest.fixture(scope="module")
def open_classifier(starter_models: Path) -> Classifier:
    return opened(Classifier, starter_models / "support-intent" / "1.0.0")


@pytest.fixture(scope="module")
def open_reranker(starter_models: Path) -> Reranker:
    return opened(Reranker, starter_models / "minilm-reranker" / "1.0.0")


def envelope(shell: Small, operation: Operation, **body: Any) -> Envelope:
    data = json.dumps({"model": "alias"} | body).encode()
    return replace(shell.own_envelope(operation, data), answer_id="id-1", model_alias="alias")


async def ask(shell: Small, operation: Operation, **body: Any) -> Any:
    """The answer's JSON, or the Failure."""
    shell.batcher = Batcher(shell.compute, BatchTunables())  # of this test's own loop
    answer = await shell.call(envelope(shell, operation, **body))
    if isinstance(answer, Failure):
        return answer
    assert answer.final is not None
    assert answer.output_tokens == answer.final.output_tokens == 0
    record = json.loads(answer.data)
    assert record["usage"]["prompt_tokens"] == answer.final.input_tokens
    assert (record["id"], record["model"]) == ("id-1", "alias")
    return record


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Embedder, "all-minilm-l6-v2"),
        (Classifier, "support-intent"),
        (Reranker, "minilm-reranker"),
    ],
)
async def test_each_kind_loads_and_warms_before_it_answers(
    kind: type[Small], name: str, starter_models: Path
) -> None:
    shell = shell_of(kind, starter_models / name / "1.0.0")
    await shell.load()
    await shell.warm()
    # A short, a long and a full batch; a reranker's query comes on top.
    assert shell.batcher.statistics().batches >= 3
    assert shell.batcher.statistics().items >= 1 + 1 + 32
    assert shell.progress.longest_step_s > 0
    await self_tested(shell)


async def test_embeddings_are_the_same_in_both_encodings(open_embedder: Embedder) -> None:
    as_list = await ask(open_embedder, Operation.EMBED, input=["hello", "world"])
    as_text = await ask(
        open_embedder, Operation.EMBED, input=["hello", "world"], encoding_format="base64"
    )
    for one, other in zip(as_list["data"], as_text["data"], strict=True):
        raw = base64.b64decode(other["embedding"])
        assert list(struct.unpack("<384f", raw)) == one["embedding"]


async def test_token_ids_embed_like_the_text_they_came_from(open_embedder: Embedder) -> None:
    ids = open_embedder._encoder.tokenizer.texts(["where is my order"], "input")[0].ids
    text = await ask(open_embedder, Operation.EMBED, input="where is my order")
    tokens = await ask(open_embedder, Operation.EMBED, input=ids)
    assert tokens["data"] == text["data"]
    assert tokens["usage"]["prompt_tokens"] == len(ids)


async def test_a_hundred_texts_come_back_in_order(open_embedder: Embedder) -> None:
    texts = [f"order number {index} " * (1 + index % 7) for index in range(100)]
    record = await ask(open_embedder, Operation.EMBED, input=texts, dimensions=64)
    assert [row["index"] for row in record["data"]] == list(range(100))
    for index in (0, 42, 99):
        alone = await ask(open_embedder, Operation.EMBED, input=texts[index], dimensions=64)
        expected = alone["data"][0]["embedding"]
        assert record["data"][index]["embedding"] == pytest.approx(expected, abs=1e-2)


@pytest.mark.parametrize(
    ("body", "param", "wire_code", "text"),
    [
        ({"input": ["ok", LONG]}, "input", "context_length_exceeded", "input 1 has 402 tokens"),
        ({"input": [[40_000]]}, "input", None, "check_embedding_ctx_length=False"),
        ({"input": "ok", "dimensions": 385}, "dimensions", None, "this model has 384"),
        (
            {"input": "ok", "truncate_prompt_tokens": 257},
            "truncate_prompt_tokens",
            None,
            "3 to 256",
        ),
        ({"input": 5}, "input", None, "must be text"),
    ],
)
async def test_a_request_that_cannot_be_embedded_is_the_callers_fault(
    open_embedder: Embedder, body: dict[str, Any], param: str, wire_code: str | None, text: str
) -> None:
    failure = await ask(open_embedder, Operation.EMBED, **body)
    assert (failure.code, failure.param, failure.wire_code) == ("invalid_request", param, wire_code)
    assert text in failure.message


async def test_over_long_input_is_cut_when_asked(open_embedder: Embedder) -> None:
    record = await ask(open_embedder, Operation.EMBED, input=LONG, truncate_prompt_tokens=-1)
    assert record["usage"] == {"prompt_tokens": 256, "total_tokens": 256}


async def test_a_classifier_names_the_intent(open_classifier: Classifier) -> None:
    texts = ["I want my money back.", "I cannot log in, my password does not work."]
    record = await ask(open_classifier, Operation.CLASSIFY, input=texts)
    labels = open_classifier.manifest.labels
    for row in record["data"]:
        assert row["num_classes"] == len(row["probs"]) == len(labels)
        assert sum(row["probs"]) == pytest.approx(1, abs=1e-5)
        assert row["label"] == labels[row["probs"].index(max(row["probs"]))]
    assert record["data"][0]["label"] != record["data"][1]["label"]


def test_a_classifier_whose_labels_do_not_fit_its_head_does_not_start(
    open_classifier: Classifier,
) -> None:
    shell = shell_of(Classifier, open_classifier.folder)
    shell.manifest = shell.manifest.model_copy(update={"labels": ("one", "two")})
    with pytest.raises(ArtifactError, match="names 2 labels"):
        shell.open()


def test_a_reranker_of_no_kind_does_not_start(open_reranker: Reranker) -> None:
    shell = shell_of(Reranker, open_reranker.folder)
    shell.manifest = shell.manifest.model_copy(update={"score_kind": None})
    with pytest.raises(ArtifactError, match="score_kind"):
        shell.open()


async def test_a_reranker_puts_the_passage_that_answers_first(open_reranker: Reranker) -> None:
    query = "How do I send something back?"
    record = await ask(
        open_reranker, Operation.RERANK, query=query, documents=PASSAGES, return_documents=True
    )
    assert record["results"][0]["index"] == 1
    assert record["results"][0]["document"] == {"text": PASSAGES[1]}
    assert all(0 <= result["relevance_score"] <= 1 for result in record["results"])
    bare = await ask(
        open_reranker,
        Operation.RERANK,
        query=query,
        documents=[{"text": passage} for passage in PASSAGES],
        return_documents=False,
        top_n=9,
    )
    assert [set(result) for result in bare["results"]] == [{"index", "relevance_score"}] * 3


async def test_score_and_rerank_agree(open_reranker: Reranker) -> None:
    scored = await ask(
        open_reranker, Operation.SCORE, text_1="How do I send it back?", text_2=PASSAGES
    )
    ranked = await ask(
        open_reranker, Operation.RERANK, query="How do I send it back?", documents=PASSAGES
    )
    by_index = {one["index"]: one["relevance_score"] for one in ranked["results"]}
    assert [one["score"] for one in scored["data"]] == [by_index[index] for index in range(3)]


@pytest.mark.parametrize("operation", [Operation.RERANK, Operation.SCORE])
async def test_an_over_long_document_is_refused_by_its_index(
    open_reranker: Reranker, operation: Operation
) -> None:
    first = "query" if operation is Operation.RERANK else "queries"
    body = {first: "q", "documents": ["ok", LONG]}
    failure = await ask(open_reranker, operation, **body)
    assert (failure.param, failure.wire_code) == ("documents", "context_length_exceeded")
    assert "documents 1 has 402 tokens" in failure.message
    cut = await ask(open_reranker, operation, **body, truncate_prompt_tokens=-1)
    assert cut["usage"]["prompt_tokens"] == 3 + 3 + 256


async def test_max_tokens_per_doc_is_a_cut_that_was_asked_for(open_reranker: Reranker) -> None:
    body = {"query": "q", "documents": ["ok", LONG], "max_tokens_per_doc": 4096}
    assert len((await ask(open_reranker, Operation.RERANK, **body))["results"]) == 2


@pytest.mark.parametrize("bad", [[], "x", 5, {"max_batch_size": 0}, {"max_batch_sise": 8}, [{}]])
async def test_bad_tunables_are_logged_and_the_last_good_ones_stay(
    open_embedder: Embedder, bad: Any, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[BatchTunables] = []
    open_embedder.batcher = Batcher(open_embedder.compute, BatchTunables())
    open_embedder.batcher.reconfigure = seen.append  # type: ignore[method-assign, assignment]
    with caplog.at_level(logging.ERROR):
        open_embedder.reconfigure({"max_batch_size": 8})
        open_embedder.reconfigure(bad)
    assert seen == [BatchTunables(max_batch_size=8)]
    assert open_embedder._tunables == BatchTunables(max_batch_size=8)
    assert "the last good one stays" in caplog.text


async def test_a_request_past_its_deadline_leaves_the_queue(open_embedder: Embedder) -> None:
    go = threading.Event()

    def held(batch: Sequence[Any]) -> Sequence[Any]:
        assert go.wait(timeout=10)
        return open_embedder.compute(batch)

    open_embedder.batcher = Batcher(held, BatchTunables(max_batch_size=1))
    late = replace(envelope(open_embedder, Operation.EMBED, input=["a", "b"]), budget_ms=20)
    failure = await open_embedder.call(late)
    assert isinstance(failure, Failure)
    assert failure.code == "deadline_exceeded"
    assert open_embedder.batcher.statistics().waiting == 0
    go.set()
    answer = await open_embedder.call(envelope(open_embedder, Operation.EMBED, input="a"))
    assert isinstance(answer, Item)


async def test_a_large_request_is_read_and_written_off_the_loop(open_embedder: Embedder) -> None:
    threads: list[str] = []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            threads.append(threading.current_thread().name)
            return function(*args)

        return call

    ours = threading.current_thread().name
    await open_embedder.read(b"x" * 100, watched(len))
    await open_embedder.read(b"x" * 10_000, watched(len))
    one = envelope(open_embedder, Operation.EMBED, input="a")
    await open_embedder.write(one, 1, 1, watched(lambda head: b""))
    await open_embedder.write(one, 1000, 1, watched(lambda head: b""))
    assert [name == ours for name in threads] == [True, False, True, False]


async def test_concurrent_requests_share_batches(open_embedder: Embedder) -> None:
    open_embedder.batcher = Batcher(open_embedder.compute, BatchTunables())
    asked = envelope(open_embedder, Operation.EMBED, input="where is my order")
    answers = await asyncio.gather(*(open_embedder.call(asked) for _ in range(32)))
    assert all(isinstance(answer, Item) for answer in answers)
    assert open_embedder.batcher.statistics().batches <= 2


@pytest.mark.parametrize(
    ("module", "name"),
    [(embedder, "Embedder"), (classifier, "Classifier"), (reranker, "Reranker")],
)
def test_the_builder_makes_the_deployment_that_configs_name(module: Any, name: str) -> None:
    made = module.app(SmallModelArgs(artifact="file:///nowhere"))._bound_deployment
    assert (made.name, made.max_ongoing_requests) == (name, 64)


def test_the_builder_does_not_load_torch() -> None:
    code = (
        "import sys, deployments.embedder, deployments.classifier, deployments.reranker;"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("kind", "operation", "body", "param"),
    [
        ("embedder", Operation.EMBED, {"input": ["ok", "one two three four"]}, "input"),
        ("classifier", Operation.CLASSIFY, {"input": "one two three four five"}, "input"),
        (
            "reranker",
            Operation.RERANK,
            {"query": "a", "documents": ["b", "one two three four"]},
            "documents",
        ),
        (
            "reranker",
            Operation.SCORE,
            {"text_1": "a", "text_2": "one two three four"},
            "text_2",
        ),
    ],
)
async def test_an_input_longer_than_the_tenant_may_send_is_forbidden(
    kind: str, operation: Operation, body: dict[str, Any], param: str, request: Any
) -> None:
    shell: Small = request.getfixturevalue(f"open_{kind}")
    shell.batcher = Batcher(shell.compute, BatchTunables())
    tenant = Claim("a", "a-1", "", "", "batch", ("invoke",), ("*",), max_context_tokens=5)
    asked = replace(envelope(shell, operation, **body), claim=sign(tenant, shell._secret))
    failure = await shell.call(asked)
    assert isinstance(failure, Failure)
    assert (failure.code, failure.reason, failure.param) == ("forbidden", "entitlement", param)
    roomy = replace(asked, claim=sign(replace(tenant, max_context_tokens=64), shell._secret))
    assert isinstance(await shell.call(roomy), Item)


@pytest.mark.parametrize(
    ("share", "gpus", "asked"), [(0.25, 1, [0.25]), (0.25, 0, []), (None, 1, [])]
)
async def test_a_share_of_a_device_bounds_what_torch_may_take(
    starter_models: Path,
    monkeypatch: pytest.MonkeyPatch,
    share: float | None,
    gpus: int,
    asked: list[float],
) -> None:
    import torch

    folder = starter_models / "all-minilm-l6-v2" / "1.0.0"
    taken: list[float] = []
    shell = Embedder(SmallModelArgs(artifact=folder.as_uri(), gpu_memory_utilization=share))
    shell.adopt(folder, read_manifest(folder), Place(cpus=1, gpus=gpus), b"s" * 32)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", taken.append)
    await shell.load()
    assert taken == asked
