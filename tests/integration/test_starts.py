"""Starts beside a platform: what a replica may serve with, and what stops it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from ray import serve
from ray.serve.api import _run

from cluster.board import Board
from deployments import embedder
from modelyard.artifacts.manifest import read_manifest
from modelyard.artifacts.package import write_manifest
from modelyard.config.model_args import SmallModelArgs, StartBudgets
from modelyard.config.settings import Settings
from modelyard.contract.envelope import Envelope, Item
from modelyard.contract.operations import Operation
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import ReplicaReport
from modelyard.tenancy.claim import Claim, sign
from tests.integration.repackaging import WEIGHTS, rehash, repackage, rewrite_weights

# Each test has a version of its own: Serve tries the last one's broken replica again for a while.
VERSIONS = count()
pytestmark = pytest.mark.integration
WITHIN_S = 300.0


@pytest.fixture(scope="module")
def home(platform: Any) -> Iterator[Path]:
    """The platform's, for the claims that this process signs. Its own apps stay as they are."""
    before = os.environ.get("MODELYARD_HOME")
    os.environ["MODELYARD_HOME"] = str(platform.home)
    try:
        yield platform.home
    finally:
        if before is None:
            del os.environ["MODELYARD_HOME"]
        else:
            os.environ["MODELYARD_HOME"] = before


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Iterator[Path]:
    """A version of the starter embedder's files, not in any table, that a test may break."""
    version = f"9.0.{next(VERSIONS)}"
    copy = tmp_path / "all-minilm-l6-v2" / version
    shutil.copytree(home / "models" / "all-minilm-l6-v2" / "1.0.0", copy)
    write_manifest(copy, read_manifest(copy).model_copy(update={"version": version}))
    app = app_of(copy)
    yield copy
    serve.delete(app, _blocking=False)


def app_of(folder: Path) -> str:
    """The app is named after the version, wherever its folder is."""
    return read_manifest(folder).full_name


def deploy(folder: Path, **args: Any) -> None:
    arguments = SmallModelArgs(artifact=folder.as_uri(), **args)
    # As every config of ours has it: the next one is started before the last one is stopped.
    surging = embedder.deployment.options(
        max_surge_percent=100, ray_actor_options={"num_cpus": 0.3}
    )
    deployment = surging.bind(arguments)
    _run(deployment, name=app_of(folder), route_prefix=None, _blocking=False)


def reported(
    app: str, wanted: Callable[[ReplicaReport], bool], but: frozenset[str] = frozenset()
) -> ReplicaReport:
    """The first report of a replica of this app that is wanted. `but`: replicas that were there."""
    board, until = Board(), time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        for post in board.read_blocking(30):
            report = post.report
            if report.app == app and report.replica not in but and wanted(report):
                return report
        time.sleep(0.1)
    raise AssertionError("no replica reported what was waited for")


def seen() -> frozenset[str]:
    return frozenset(post.report.replica for post in Board().read_blocking(30))


def failed_start(folder: Path, **args: Any) -> ReplicaReport:
    before = seen()
    deploy(folder, **args)
    return reported(app_of(folder), lambda report: report.phase is Phase.FAILED, before)


def says(report: ReplicaReport, *texts: str) -> bool:
    assert report.cause_kind is Cause.START_FAILED
    assert report.cause is not None
    missing = [text for text in texts if text not in report.cause]
    assert not missing, report.cause
    return True


async def ask(app: str, text: str) -> Item:
    """By handle, as an ingress would."""
    claim = Claim("t", "k", "paid", "local", "interactive", (), ("*",))
    envelope = Envelope(
        claim=sign(claim, Settings.from_environment().secret()),
        version=app,
        operation=Operation.EMBED,
        body=json.dumps({"model": "m", "input": text}).encode(),
        stream=False,
        budget_ms=60_000,
        band="interactive",
        request_id="r",
        answer_id="a",
        model_alias="m",
    )
    answer = await serve.get_app_handle(app).call.remote(envelope)
    assert isinstance(answer, Item), answer
    return answer


async def test_a_bad_replacement_never_answers_and_the_good_version_serves_on(
    folder: Path, tmp_path: Path
) -> None:
    """The replacement's every request would be wrong; it gets none, and the app keeps its first."""
    app = app_of(folder)
    sound = tmp_path / "sound"
    shutil.copytree(folder, sound)
    deploy(sound)
    good = reported(app, lambda report: report.ready)
    assert [phase for phase, _ in good.phases] == [
        Phase.FETCHING,
        Phase.VERIFYING,
        Phase.LOADING,
        Phase.WARMING,
        Phase.SELF_TEST,
    ]
    assert good.started
    assert good.description is not None
    first = json.loads((await ask(app, "Where is my order?")).data)["data"]

    def change(tensors: dict[str, Any]) -> None:
        tensors["encoder.layer.5.output.LayerNorm.weight"][:] *= -1
        tensors["encoder.layer.5.output.LayerNorm.bias"][:] += 3

    rewrite_weights(folder, change)
    repackage(folder)
    report = failed_start(folder)
    assert report.phases[-1][0] is Phase.SELF_TEST
    assert report.replica != good.replica
    for _ in range(20):
        assert json.loads((await ask(app, "Where is my order?")).data)["data"] == first
    posts = [
        post.report
        for post in Board().read_blocking(30)
        if post.age_s < 5 and post.report.app == app
    ]
    assert [one.replica for one in posts if one.ready] == [good.replica]
    serve.delete(app, _blocking=False)
    left = reported(app, lambda report: report.phase is Phase.DRAINING)
    assert (left.replica, left.started, left.ready) == (good.replica, True, False)


def test_one_weight_byte_changed_is_stopped_while_verifying(folder: Path) -> None:
    data = bytearray((folder / WEIGHTS).read_bytes())
    data[-3] ^= 0x40
    (folder / WEIGHTS).write_bytes(data)
    report = failed_start(folder)
    assert report.phases[-1][0] is Phase.VERIFYING
    assert says(report, "Verifying: ", WEIGHTS, "expected sha256", "got")


def test_one_weight_byte_changed_under_a_new_digest_is_stopped_by_the_self_test(
    folder: Path,
) -> None:
    """The sign and exponent of one number that every text passes through."""

    def change(tensors: dict[str, Any]) -> None:
        bias = tensors["encoder.layer.5.output.LayerNorm.bias"]
        bias.view(torch.uint8)[bias.element_size() * 8 - 1] = 0x47  # 3e4 and more

    rewrite_weights(folder, change)
    repackage(folder)
    report = failed_start(folder)
    assert report.phases[-1][0] is Phase.SELF_TEST
    assert says(report, "SelfTest: golden prompt short: ", "cosine", "expected 0.99, got")


def test_weights_that_are_nan_are_stopped_with_words(folder: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        tensors["embeddings.word_embeddings.weight"][:] = float("nan")

    rewrite_weights(folder, change)
    rehash(folder)
    report = failed_start(folder)
    assert report.phases[-1][0] in (Phase.WARMING, Phase.SELF_TEST)
    assert says(report, "no finite numbers")


def test_a_swapped_tokenizer_is_stopped_by_the_self_test(folder: Path) -> None:
    """Two words change places: as many rows, another meaning."""
    path = folder / "tokenizer.json"
    record = json.loads(path.read_text())
    vocabulary = record["model"]["vocab"]
    vocabulary["where"], vocabulary["there"] = vocabulary["there"], vocabulary["where"]
    path.write_text(json.dumps(record, ensure_ascii=False))
    repackage(folder)
    report = failed_start(folder)
    assert report.phases[-1][0] is Phase.SELF_TEST
    assert says(report, "SelfTest: golden prompt short: ", "tokenizer", "other ids", "from token 1")


def test_another_dtype_than_the_manifest_says_is_stopped_while_verifying(folder: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        for name in list(tensors):
            if tensors[name].dtype == torch.float32:
                tensors[name] = tensors[name].to(torch.float16)

    rewrite_weights(folder, change)
    rehash(folder)
    report = failed_start(folder)
    assert report.phases[-1][0] is Phase.VERIFYING
    assert says(report, "Verifying: ", "dtype", "expected", "float16")


def test_a_truncated_file_is_stopped_while_verifying(folder: Path) -> None:
    path = folder / WEIGHTS
    path.write_bytes(path.read_bytes()[:-1000])
    report = failed_start(folder)
    assert report.phases[-1][0] is Phase.VERIFYING
    assert says(report, "Verifying: ", WEIGHTS, "expected bytes", "got")


def test_another_manifest_than_the_pinned_one_is_refused(folder: Path) -> None:
    report = failed_start(folder, digest="0" * 64)
    assert says(report, "Fetching: ", "0" * 8, read_manifest(folder).digest()[:8])


def test_a_phase_over_its_budget_fails_with_its_name(folder: Path) -> None:
    report = failed_start(folder, start_budgets=StartBudgets(loading_s=0.01))
    assert report.phases[-1][0] is Phase.LOADING
    assert says(report, "the phase Loading took longer than its budget of 0.01 s", "loading_s")
