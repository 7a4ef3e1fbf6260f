"""Control's deployment: what a handle can name, who is answered, and what Serve is told."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster.board import BoardActor
from deployments import control
from deployments.control import Control
from deployments.control_host import ControlHost
from modelyard.contract.envelope import Failure
from modelyard.control.client import ingress_token
from modelyard.control.journal import Journal
from modelyard.control.report import ControlReply, ControlReport
from modelyard.control.service import ControlService
from modelyard.control.store_sqlite import SqliteStore
from modelyard.quota.gate import QuotaGate
from modelyard.telemetry.process_metrics import ProcessMetrics
from modelyard.tenancy.claim import Claim, sign
from modelyard.testing.in_memory import table_record

SECRET = b"a signing key for tests only: 32+"
ADMIN = sign(Claim("", "ops-1", "", "", "batch", ("admin",), ()), SECRET)
TENANT = sign(Claim("alpha", "k", "paid", "eu", "batch", ("invoke",), ("*",)), SECRET)


@pytest.fixture
async def host(tmp_path: Path) -> ControlHost:
    """A host over a real board and store, called in this process."""
    made = object.__new__(ControlHost)
    made._secret, made._token, made._ingress = SECRET, ingress_token(SECRET), None
    made._board = BoardActor()  # type: ignore[assignment]
    made._metrics = ProcessMetrics("control", "c-1", SECRET)
    journal = Journal(SqliteStore(tmp_path / "control.sqlite"))
    made._service = ControlService(journal, made._publish)
    await made.start()
    return made


@pytest.fixture
def door(host: ControlHost) -> Control:
    door = object.__new__(control.Control)
    door._host = host
    return door


def test_a_handle_can_name_seven_methods_and_no_call_dunder() -> None:
    made: Any = control.deployment.func_or_class
    named = {
        name
        for name, value in inspect.getmembers(made)
        if callable(value) and not (name.startswith("__") and name.endswith("__"))
    }
    assert named == {
        "admin",
        "exchange",
        "recall",
        "last_table",
        "scrape",
        "check_health",
        "reconfigure",
    }
    assert "__call__" not in vars(made)
    assert control.deployment.num_replicas == 1
    assert control.deployment.name == "Control"


@pytest.mark.parametrize(
    ("token", "code"), [("", "unauthenticated"), ("x.y", "unauthenticated"), (TENANT, "forbidden")]
)
async def test_a_stray_is_refused_everywhere(door: Control, token: str, code: str) -> None:
    need = QuotaGate("i-1", 0.0).report(0.0)
    answers: list[Any] = [
        await door.admin(token, "status", {}, "r"),
        await door.exchange(token, ControlReport("i-1")),
        await door.recall(token, need),
        await door.last_table(token),
        await door.scrape(token),
    ]
    assert [answer.code for answer in answers if isinstance(answer, Failure)] == [code] * 5


async def test_an_admin_is_no_ingress_and_an_ingress_no_admin(door: Control) -> None:
    refused = await door.exchange(ADMIN, ControlReport("i-1"))
    assert isinstance(refused, Failure)
    refused = await door.admin(ingress_token(SECRET), "status", {}, "r")  # type: ignore[assignment]
    assert isinstance(refused, Failure)
    reply = await door.exchange(ingress_token(SECRET), ControlReport("i-1"))
    assert isinstance(reply, ControlReply)
    assert reply.epoch == 1


async def test_the_author_is_the_key_of_the_claim(door: Control) -> None:
    await door.reconfigure(table_record())
    answer = await door.admin(ADMIN, "revoke", {"key": "beta-1"}, "r-1")
    assert isinstance(answer, dict)
    keys = await door.admin(ADMIN, "keys", {}, "r-2")
    assert isinstance(keys, dict)
    [revoked] = [key for key in keys["keys"] if key["revoked"]]
    assert (revoked["id"], revoked["revoked_by"]) == ("beta-1", "ops-1")


@pytest.mark.parametrize("table", [None, 3, [], {}, {"schema": "modelyard/table/v9"}])
async def test_a_bad_table_raises_nothing_and_leaves_the_last_good_one(
    door: Control, table: Any
) -> None:
    await door.reconfigure(table_record())
    await door.reconfigure(table)
    assert await door.last_table(ingress_token(SECRET)) == table_record()
    await door.check_health()


async def test_a_succeeded_control_is_unhealthy(
    door: Control, host: ControlHost, tmp_path: Path
) -> None:
    await door.check_health()
    successor = ControlService(Journal(SqliteStore(tmp_path / "control.sqlite")), host._publish)
    await successor.start(None)
    await successor.tick(None)
    await host._service.tick(None)
    with pytest.raises(RuntimeError, match="taken over"):
        await door.check_health()


async def test_a_bug_leaks_nothing(door: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(command: object) -> Mapping[str, Any]:
        raise KeyError("a secret")

    monkeypatch.setattr(door._host._service, "admin", broken)
    answer = await door.admin(ADMIN, "status", {}, "r")
    assert isinstance(answer, Failure)
    assert answer.code == "internal"
    assert "secret" not in answer.message
