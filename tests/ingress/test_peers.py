"""What one ingress answers to control and its fellows, and to nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelyard.contract.envelope import Failure
from modelyard.control.client import ingress_token
from modelyard.ingress.peers import Peers
from modelyard.quota.book import Book
from modelyard.quota.gate import QuotaGate
from modelyard.quota.messages import HolderReport
from modelyard.telemetry.request_log import RequestLog, RequestRecord
from modelyard.tenancy.claim import Claim, sign

SECRET = b"a signing key for tests only: 32+"
STRANGER = sign(Claim("alpha", "k", "paid", "eu", "batch", ("admin",), ("*",)), SECRET)


@pytest.fixture
def gate() -> QuotaGate:
    return QuotaGate("i-1", 0.0)


@pytest.fixture
def peers(gate: QuotaGate, tmp_path: Path) -> Peers:
    return Peers(SECRET, "i-1", gate, tmp_path, lambda: 1.0)


@pytest.mark.parametrize(("token", "code"), [("x", "unauthenticated"), (STRANGER, "forbidden")])
async def test_a_stranger_is_refused(peers: Peers, token: str, code: str) -> None:
    for answer in (await peers.surrender(token, {}), await peers.find_request(token, "r-1")):
        assert isinstance(answer, Failure)
        assert answer.code == code


async def test_surrender_takes_the_reply_for_this_ingress_and_reports(
    peers: Peers, gate: QuotaGate
) -> None:
    book = Book(3, 0.0)
    reply = book.take(gate.report(0.5), 0.5)
    assert reply is not None
    report = await peers.surrender(ingress_token(SECRET), {"i-1": reply, "i-2": reply})
    assert isinstance(report, HolderReport)
    assert (report.ingress, report.epoch, report.acked) == ("i-1", 3, reply.serial)


async def test_a_request_is_found_on_this_node(peers: Peers, tmp_path: Path) -> None:
    log = RequestLog(tmp_path, "i-9")
    log.write(RequestRecord("t", "r-1", "/v1/generate"))
    log.close()
    found = await peers.find_request(ingress_token(SECRET), "r-1")
    assert isinstance(found, list)
    assert [line["request_id"] for line in found] == ["r-1"]
