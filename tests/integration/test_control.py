"""Control on the running platform: killed, its store lost, and what operators decide in it.

Each test ends what it began, because the platform serves the others too.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psutil
import pytest

from cluster.running import run_of
from modelyard.config.demo import NIGHTLY_KEY, OPS_KEY

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TITLE = "ServeReplica:control:Control"
EMBED = {"model": "support-embed", "input": "a text"}
EMBEDDER = "all-minilm-l6-v2@1.0.0"
WaitFor = Callable[[str, Callable[[], Any]], Any]


class Operator:
    """A platform as an operator sees it."""

    def __init__(self, platform: Any, wait_for: WaitFor) -> None:
        self.platform = platform
        self.wait_for = wait_for
        self.client = platform.client(OPS_KEY)

    def status(self) -> dict[str, Any] | None:
        """Control's own word; None while it is away."""
        answer = self.client.get("/admin/status")
        if answer.status_code == 503:
            assert answer.json()["error"]["reason"] == "control_down"
            assert answer.headers["retry-after"] == "5"
            return None
        assert answer.status_code == 200, answer.text
        record: dict[str, Any] = answer.json()
        return record

    def up(self) -> dict[str, Any]:
        record: dict[str, Any] = self.wait_for("control's answer", self.status)
        return record

    def process(self) -> psutil.Process | None:
        """Control's process on this platform."""
        return next(iter(self.processes(TITLE)), None)

    def processes(self, title: str) -> list[psutil.Process]:
        state = json.loads((self.platform.home / "run" / "local.json").read_text())
        members = run_of(state["run_id"], state["pid"]).processes()
        return [one for one in members if title in _title(one)]

    def kill(self) -> dict[str, Any]:
        """Kill it with -9; its successor's first word."""
        before = self.up()["epoch"]
        killed = self.wait_for("control's process", self.process)
        os.kill(killed.pid, signal.SIGKILL)

        def later() -> dict[str, Any] | None:
            record = self.status()
            return record if record is not None and record["epoch"] > before else None

        record: dict[str, Any] = self.wait_for("control's successor", later)
        return record

    def override(self, expires_in_s: float) -> str:
        body = {
            "kind": "freeze",
            "target": EMBEDDER,
            "expires_in_s": expires_in_s,
            "reason": "a test",
        }
        answer = self.client.post("/admin/overrides", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    def overrides(self) -> list[dict[str, Any]]:
        answer = self.client.get("/admin/overrides")
        assert answer.status_code == 200, answer.text
        listed: list[dict[str, Any]] = answer.json()["overrides"]
        return listed


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.fixture(scope="module")
def operator(platform: Any, wait_for: WaitFor) -> Iterator[Operator]:
    made = Operator(platform, wait_for)
    with made.client:
        made.up()
        yield made


@contextmanager
def requests_flowing(platform: Any) -> Iterator[Counter[str]]:
    """Two callers without a pause; how each request ended."""
    ended: Counter[str] = Counter()
    stop = threading.Event()

    def call() -> None:
        with platform.client() as client:
            while not stop.is_set():
                try:
                    answer = client.post("/v1/embeddings", json=EMBED)
                    ended[str(answer.status_code)] += 1
                except httpx.TransportError as error:
                    ended[repr(error)] += 1

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield ended
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_control_is_killed_and_no_request_notices(operator: Operator) -> None:
    identifier = operator.override(600)
    before = operator.up()
    with requests_flowing(operator.platform) as ended:
        after = operator.kill()
    assert set(ended) == {"200"}, ended
    assert ended["200"] > 0
    assert after["epoch"] > before["epoch"]
    assert after["held"] == ""
    assert [one["id"] for one in operator.overrides()] == [identifier]
    operator.client.delete(f"/admin/overrides/{identifier}").raise_for_status()
    assert operator.overrides() == []


def test_the_store_is_lost_with_control_and_the_board_brings_the_state_back(
    operator: Operator,
) -> None:
    operator.override(600)
    before = operator.up()
    for path in operator.platform.home.glob("control.sqlite*"):
        path.unlink()
    with requests_flowing(operator.platform) as ended:
        after = operator.kill()
    assert set(ended) == {"200"}, ended
    assert after["epoch"] > before["epoch"]
    assert "the store was lost" in after["held"]
    [restored] = operator.overrides()
    assert (restored["kind"], restored["target"], restored["author"]) == (
        "freeze",
        EMBEDDER,
        "ops-1",
    )
    assert after["revoked_keys"] == before["revoked_keys"]
    assert "HELD" in operator.platform.run("status").stdout
    operator.client.delete(f"/admin/overrides/{restored['id']}").raise_for_status()
    operator.client.delete("/admin/hold").raise_for_status()
    assert operator.up()["held"] == ""


def test_a_control_that_hangs_holds_no_request_up(operator: Operator) -> None:
    hanging = operator.wait_for("control's process", operator.process)
    with requests_flowing(operator.platform) as ended:
        hanging.suspend()
        try:
            before = ended["200"]
            operator.wait_for("answers without control", lambda: ended["200"] > before + 100)
            answer = operator.client.get("/admin/overrides")
            assert answer.status_code == 503
            assert answer.json()["error"]["reason"] == "control_down"
        finally:
            hanging.resume()
    assert set(ended) == {"200"}, ended
    operator.up()


def test_an_override_ends_by_itself(operator: Operator) -> None:
    operator.override(3)
    assert len(operator.overrides()) == 1
    operator.wait_for("the override's end", lambda: operator.overrides() == [])


def test_an_override_shows_in_status_with_its_author(operator: Operator) -> None:
    identifier = operator.override(600)

    def shown() -> bool:
        record = json.loads(operator.platform.run("status", "-o", "json").stdout)
        word = record["control"] or {"overrides": []}
        assert len(record["ingresses"]) == 2
        return any(one["author"] == "ops-1" for one in word["overrides"])

    operator.wait_for("the override in status", shown)
    operator.client.delete(f"/admin/overrides/{identifier}").raise_for_status()


def test_a_revoked_key_is_refused_by_both_ingresses_and_stays_so(operator: Operator) -> None:
    """Last but for the reads: nothing gives the key back. Prints how long both took."""
    with operator.platform.client(NIGHTLY_KEY) as nightly:
        assert nightly.post("/v1/embeddings", json=EMBED).status_code == 200
        operator.client.post("/admin/keys/nightly-1/revoke", json={}).raise_for_status()
        began = time.monotonic()

        def refused_everywhere() -> bool:
            """Connections are spread over the ingresses, so twenty in a row met both."""
            return all(_fresh_status(operator, NIGHTLY_KEY) == 401 for _ in range(20))

        operator.wait_for("the revocation at both ingresses", refused_everywhere)
        print(f"revoked at both ingresses {time.monotonic() - began:.2f} s after the answer")
        operator.kill()
        assert refused_everywhere()
        keys = {one["id"]: one for one in operator.client.get("/admin/keys").json()["keys"]}
        assert keys["nightly-1"]["revoked_by"] == "ops-1"


def test_board_store_and_control_are_lost_and_a_revocation_is_not(operator: Operator) -> None:
    """The ingresses alone still know what control said, and tell the board and control."""
    before = operator.up()
    [board] = operator.processes("BoardActor")
    for path in operator.platform.home.glob("control.sqlite*"):
        path.unlink()
    board.kill()
    after = operator.kill()
    assert after["epoch"] > before["epoch"]
    assert before["revoked_keys"]
    assert after["revoked_keys"] == before["revoked_keys"]
    assert _fresh_status(operator, NIGHTLY_KEY) == 401
    operator.client.delete("/admin/hold").raise_for_status()


def _fresh_status(operator: Operator, key: str) -> int:
    with operator.platform.client(key) as client:
        return int(client.post("/v1/embeddings", json=EMBED).status_code)


def test_why_and_usage_tell_of_a_request(operator: Operator) -> None:
    with operator.platform.client() as client:
        answer = client.post("/v1/embeddings", json=EMBED, headers={"X-Request-Id": "why-me"})
    answer.raise_for_status()

    def found() -> Any:
        told = operator.client.get("/admin/why/why-me")
        return told.json() if told.status_code == 200 else None

    told = operator.wait_for("the request in a log", found)
    assert told["lines"][0]["version"] == EMBEDDER
    assert f"support-embed -> {EMBEDDER}" in " ".join(told["words"][0])
    assert (told["ingresses_asked"], told["ingresses_silent"]) == (2, 0)
    assert "support-embed" in operator.platform.run("why", "why-me").stdout

    def counted() -> bool:
        rows = operator.client.get("/admin/usage", params={"tenant": "demo"}).json()["usage"]
        return any(row["version"] == EMBEDDER and row["requests"] > 0 for row in rows)

    operator.wait_for("the request in the usage", counted)


def test_a_tenants_key_may_not_administer(operator: Operator) -> None:
    with operator.platform.client() as client:
        answer = client.get("/admin/status")
    assert answer.status_code == 403
