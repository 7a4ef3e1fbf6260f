import pytest

from modelyard.config.table import Table, parse_table
from modelyard.contract.errors import Unauthenticated
from modelyard.tenancy import callers
from modelyard.tenancy.callers import TokenCallers
from modelyard.tenancy.claim import verify
from modelyard.tenancy.jwks import KeySet, parse_jwks
from modelyard.tenancy.jwt import VerifiedToken, verify_token
from modelyard.tenancy.signing_keys import JwksSource
from modelyard.testing.in_memory import SECRET, table_record
from modelyard.testing.issuer import AUDIENCE, NAME, InMemoryIssuer

NOW = 1_800_000_000.0


def table_of(**issuer: object) -> Table:
    record = {"issuer": NAME, "audience": AUDIENCE, "jwks": "file:///none"} | issuer
    return parse_table(table_record(issuers=[record]))


class FixedSource(JwksSource):
    """Keys as a test sets them."""

    def __init__(self, issuer: InMemoryIssuer) -> None:
        super().__init__()
        self.issuer = issuer

    def keys(self, issuer: str) -> KeySet:
        return parse_jwks(self.issuer.jwks())


@pytest.fixture
def verifications(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tokens that were really verified."""
    seen: list[str] = []
    real = verify_token

    def counted(token: str, *arguments: object) -> VerifiedToken:
        seen.append(token)
        return real(token, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(callers, "verify_token", counted)
    return seen


def test_a_token_becomes_the_claim_of_its_tenant(issuer: InMemoryIssuer) -> None:
    found = TokenCallers(table_of(), SECRET, FixedSource(issuer))
    caller = found.find(issuer.token(NOW), NOW)
    claim = caller.claim
    assert (claim.tenant, claim.tier, claim.region) == ("alpha", "paid", "eu")
    assert (claim.key_id, claim.roles, claim.models) == (f"jwt:{NAME}", ("invoke",), ("*",))
    assert claim.subject != ""
    assert verify(caller.token, SECRET) == claim


def test_a_token_gives_itself_no_role_and_no_entitlement(issuer: InMemoryIssuer) -> None:
    found = TokenCallers(table_of(), SECRET, FixedSource(issuer))
    token = issuer.token(
        NOW, tenant="beta", roles=["admin"], role="admin", models=["*"], priority="interactive"
    )
    claim = found.find(token, NOW).claim
    assert (claim.roles, claim.models, claim.priority) == (("invoke",), ("team/embed",), "batch")


@pytest.mark.parametrize("tenant", ["gamma", "", "*", "alpha "])
def test_a_tenant_that_is_not_in_the_table_is_refused(issuer: InMemoryIssuer, tenant: str) -> None:
    found = TokenCallers(table_of(), SECRET, FixedSource(issuer))
    with pytest.raises(Unauthenticated, match="not one of this platform"):
        found.find(issuer.token(NOW, tenant=tenant), NOW)


def test_a_token_is_verified_once_and_again_when_it_has_expired(
    issuer: InMemoryIssuer, verifications: list[str]
) -> None:
    found = TokenCallers(table_of(skew_s=0), SECRET, FixedSource(issuer))
    token = issuer.token(NOW)
    first = found.find(token, NOW)
    assert all(found.find(token, NOW + age) is first for age in (0, 1, 599))
    assert verifications == [token]
    with pytest.raises(Unauthenticated, match="expired"):
        found.find(token, NOW + 600)


def test_what_is_kept_is_dropped_when_an_issuers_keys_change(
    issuer: InMemoryIssuer, rotated: InMemoryIssuer
) -> None:
    source = FixedSource(issuer)
    found = TokenCallers(table_of(), SECRET, source)
    token = issuer.token(NOW)
    found.find(token, NOW)
    source.issuer = rotated
    source.generation += 1
    with pytest.raises(Unauthenticated, match="not known here"):
        found.find(token, NOW)


def test_only_the_tokens_used_last_are_kept(
    issuer: InMemoryIssuer, verifications: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MAX_CACHED_TOKENS", 2)
    found = TokenCallers(table_of(), SECRET, FixedSource(issuer))
    one, two, three = (issuer.token(NOW, sub=name) for name in "abc")
    for token in (one, two, one, three, one, two):
        found.find(token, NOW)
    assert verifications == [one, two, three, two]


def test_a_refused_token_is_not_kept(issuer: InMemoryIssuer, verifications: list[str]) -> None:
    found = TokenCallers(table_of(), SECRET, FixedSource(issuer))
    token = issuer.token(NOW, aud="another")
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            found.find(token, NOW)
    assert verifications == [token] * 3
