"""Jobs of the same Ray cluster, each a process with its own driver, as users start them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet
import pytest

from modelyard.config.demo import DEMO_KEY

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
JOBS = Path(__file__).parent / "jobs"
EXAMPLE = ROOT / "docs" / "examples" / "embed_and_classify.py"
EMBEDDER = "all-minilm-l6-v2@1.0.0"
GENERATOR = "smollm2-135m-instruct@1.0.0"
INGRESSES = 2


def address(platform: Any) -> str:
    return f"127.0.0.1:{6389 + platform.port_offset}"


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"RAY_AUTH_MODE": "token"} | more


def job(script: Path, *arguments: str, **more: str) -> str:
    """Run a job to its end; what it printed."""
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def seen(platform: Any) -> dict[str, Any]:
    """What one job saw of every operation; in one job because a driver takes seconds to start."""
    lines = job(JOBS / "every_operation.py", address(platform)).splitlines()
    return dict(json.loads(lines[-1]))


def handle_lines(platform: Any, operation: str) -> list[dict[str, Any]]:
    """The request log's lines of one operation by handle."""
    lines = [
        json.loads(line)
        for path in (platform.home / "logs").glob("requests-*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return [line for line in lines if line["route"] == f"handle/{operation}"]


def test_every_operation_answers(seen: dict[str, Any]) -> None:
    text = "The capital of France is Paris."
    assert seen["async"]["generate"] == [text, "stop", GENERATOR, 8]
    assert seen["async"]["stream"][:3] == [text, text, "stop"]
    assert seen["async"]["stream"][3] > 3, "the stream came in one piece"
    assert seen["async"]["embed"] == [[3, 384], True]
    assert seen["async"]["classify"] == [["order_status"], [1, 8]]
    assert seen["async"]["rerank"] == [1, 0]


def test_every_operation_answers_without_a_loop(seen: dict[str, Any]) -> None:
    assert seen["sync"] == {
        "generate": "The capital of France is Paris.",
        "stream": "The capital of France is Paris.",
        "embed": [1, 384],
        "classify": ["order_status"],
        "rerank": [1, 0],
    }


def test_refusals_are_those_of_http(seen: dict[str, Any]) -> None:
    assert seen["refused"] == {
        "wrong key": "unauthenticated",
        "foreign model": "forbidden",
        "unknown model": "not_found",
        "wrong kind": "invalid_request",
        "too long": "invalid_request",
        "too large": "invalid_request",
        "deadline": "deadline_exceeded",
    }


def test_a_deadline_cuts_a_stream_and_leaves_its_text(seen: dict[str, Any]) -> None:
    assert seen["cut"] == ["deadline_exceeded", True]


def test_a_handle_cannot_replace_the_table(seen: dict[str, Any], platform: Any) -> None:
    assert seen["reconfigure"] == "Forbidden"
    with platform.client() as client:
        assert client.get("/v1/models").status_code == 200


def test_a_stream_that_a_job_left_frees_its_slot(
    seen: dict[str, Any], platform: Any, wait_for: Any
) -> None:
    def cancelled() -> list[dict[str, Any]]:
        lines = handle_lines(platform, "generate")
        return [line for line in lines if line["code"] == "cancelled" and line.get("stream")]

    lines = wait_for("the end of the stream", cancelled)
    assert all(line["output_tokens"] < 512 for line in lines)
    wait_for("an idle replica", lambda: platform.replica(GENERATOR).ongoing == 0)


def test_the_log_knows_the_tenant_of_a_job(seen: dict[str, Any], platform: Any) -> None:
    ends = {(line.get("tenant"), line["code"]) for line in handle_lines(platform, "classify")}
    assert ("demo", "ok") in ends


@contextmanager
def steady_job(platform: Any, calls: int) -> Iterator[subprocess.Popen[str]]:
    """A job that is under way while the body runs."""
    command = [sys.executable, str(JOBS / "steady_embedding.py"), address(platform), str(calls)]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            while (line := running.stdout.readline()) and line.strip() != "under way":
                pass  # what Serve prints when a handle is made
            assert line, running.stderr and running.stderr.read()[-2000:]
            yield running
        finally:
            running.kill()


def ended(running: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err[-2000:]
    return dict(json.loads(out.splitlines()[-1]))


def test_a_killed_replica_costs_a_job_no_row(platform: Any, wait_for: Any) -> None:
    embedder = psutil.Process(platform.replica(EMBEDDER).pid)
    with steady_job(platform, 400) as running:
        # Stopped first, and killed when every call waits in it: a kill could fall between two.
        embedder.suspend()
        wait_for("calls that wait in the replica", lambda: stands_still(platform))
        assert running.poll() is None, "the job was over before its replica was stopped"
        embedder.kill()
        assert ended(running) == {"answered": 400, "failed": []}
    # The ingress sent it again itself, or the client did.
    wait_for(
        "a call that met the kill",
        lambda: any(
            line["status"] != 200 or line["attempt"] == 2
            for line in handle_lines(platform, "embed")
        ),
    )


def stands_still(platform: Any) -> bool:
    """No call ended for ten of the log's writing periods."""
    before = len(handle_lines(platform, "embed"))
    time.sleep(1.0)
    return len(handle_lines(platform, "embed")) == before


def test_a_killed_ingress_costs_a_job_no_row(platform: Any, wait_for: Any) -> None:
    with steady_job(platform, 400) as running:
        platform.ingresses()[0].kill()
        assert ended(running) == {"answered": 400, "failed": []}
    wait_for("the next ingress", lambda: len(platform.ingresses()) == INGRESSES)


def test_the_example_embeds_and_classifies_rows(platform: Any, tmp_path: Path) -> None:
    """The script of docs/data-jobs.md, with two rows that are too long for the models."""
    printed = job(
        EXAMPLE,
        *("--rows", "400", "--too-long-every", "200", "--output", str(tmp_path / "out")),
        RAY_ADDRESS=address(platform),
        MODELYARD_API_KEY=DEMO_KEY,
    )
    assert "rows/s" in printed
    table = pyarrow.parquet.read_table(tmp_path / "out").sort_by("id")
    assert table["id"].to_pylist() == list(range(400))
    wrong = [row for row in table.to_pylist() if row["error"]]
    assert [row["id"] for row in wrong] == [199, 399]
    assert all(row["label"] is None and row["embedding"] is None for row in wrong)
    right = [row for row in table.to_pylist() if not row["error"]]
    assert all(len(row["embedding"]) == 384 for row in right)
    assert {row["label"] for row in right} >= {"order_status", "refund_request"}
