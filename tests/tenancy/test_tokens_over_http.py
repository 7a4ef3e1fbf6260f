"""A signed token through a whole ingress: the route, the record and the claim that is sent on."""

from pathlib import Path

import httpx
import pytest

from modelyard.config.table import parse_table
from modelyard.contract.envelope import Item, Usage
from modelyard.tenancy.claim import verify
from modelyard.tenancy.signing_keys import JwksSource
from modelyard.testing.in_memory import SECRET, InMemoryIngress, bearer, table_record
from modelyard.testing.issuer import AUDIENCE, NAME, InMemoryIssuer

BODY = {"model": "chat", "messages": [{"role": "user", "content": "hi"}]}
NOW = 1_800_000_000.0
ANSWER = Item(b"{}", 1, Usage(1, 1))


@pytest.fixture
def ingress(issuer: InMemoryIssuer, tmp_path: Path) -> InMemoryIngress:
    path = tmp_path / "keys.json"
    path.write_bytes(issuer.jwks())
    record = {"issuer": NAME, "audience": AUDIENCE, "jwks": path.as_uri()}
    made = InMemoryIngress([ANSWER], [ANSWER])
    made.pipeline._signing_keys = JwksSource()
    made.pipeline.adopt(parse_table(table_record(issuers=[record])))
    return made


async def asked(ingress: InMemoryIngress, token: str) -> httpx.Response:
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://ingress.test") as http:
        return await http.post("/v1/chat/completions", json=BODY, headers=bearer(token))


async def test_a_token_is_answered_and_its_tenant_goes_along(
    ingress: InMemoryIngress, issuer: InMemoryIssuer
) -> None:
    # Real time: the pipeline reads the wall clock. It expires in far more than this test takes.
    token = issuer.token(NOW, "RS256", iat=None, exp=99_999_999_999)
    answer = await asked(ingress, token)
    assert answer.status_code == 200
    claim = verify(ingress.transport.calls[-1].envelope.claim, SECRET)
    assert (claim.tenant, claim.key_id) == ("alpha", f"jwt:{NAME}")
    assert (ingress.records[-1].tenant, ingress.records[-1].key_id) == ("alpha", f"jwt:{NAME}")


@pytest.mark.usefixtures("patient")
async def test_a_forged_token_is_401_in_openais_words(
    ingress: InMemoryIngress, other_issuer: InMemoryIssuer, issuer: InMemoryIssuer
) -> None:
    forged = other_issuer.signed(issuer.claims(NOW, iat=None, exp=99_999_999_999), "RS256")
    answer = await asked(ingress, forged)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert ingress.records[-1].tenant == ""
    assert not ingress.transport.calls
