import hmac
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.table import parse_table
from modelyard.contract.errors import Forbidden, Unauthenticated
from modelyard.tenancy.authenticator import Authenticator
from modelyard.tenancy.claim import Claim, verify
from modelyard.tenancy.keys import hash_key
from modelyard.tenancy.signing_keys import JwksSource
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    BETA_KEY,
    EVALUATOR_KEY,
    OPS_KEY,
    SECRET,
    table_record,
)
from modelyard.testing.issuer import AUDIENCE, NAME, InMemoryIssuer

NOW = 1_800_000_000.0
AUTHENTICATOR = Authenticator(parse_table(table_record()), SECRET)


def test_a_key_becomes_the_claim_of_its_tenant() -> None:
    caller = AUTHENTICATOR.authenticate(f"Bearer {ALPHA_KEY}", "invoke")
    assert caller.claim == Claim(
        tenant="alpha",
        key_id="alpha-1",
        tier="paid",
        region="eu",
        priority="interactive",
        roles=("invoke",),
        models=("*",),
        arms=("stable", "canary"),
        max_context_tokens=None,
        features=None,
        subject="",
    )
    assert verify(caller.token, SECRET) == caller.claim


def test_two_keys_of_one_tenant_differ_in_their_roles() -> None:
    evaluator = AUTHENTICATOR.authenticate(f"Bearer {EVALUATOR_KEY}", "evaluate")
    assert evaluator.claim.tenant == "beta"
    assert evaluator.roles == {"invoke", "evaluate"}


@pytest.mark.parametrize("header", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {} "])
def test_the_scheme_is_read_in_any_case(header: str) -> None:
    caller = AUTHENTICATOR.authenticate(header.format(BETA_KEY), "invoke")
    assert caller.claim.tenant == "beta"


@pytest.mark.parametrize("header", [None, "", "Bearer", f"Basic {ALPHA_KEY}", ALPHA_KEY])
def test_no_bearer_key_says_how_to_send_one(header: str | None) -> None:
    with pytest.raises(Unauthenticated, match="Authorization: Bearer"):
        AUTHENTICATOR.authenticate(header, "invoke")


@given(key=st.text(st.characters(max_codepoint=0xFF)))
def test_any_unknown_key_is_unauthenticated_and_is_not_echoed(key: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        AUTHENTICATOR.authenticate(f"Bearer xx{key}", "invoke")
    assert f"xx{key}" not in caught.value.message


def test_a_revoked_key_is_unknown() -> None:
    keys = [key for key in table_record()["keys"] if key["id"] != "alpha-1"]
    authenticator = Authenticator(parse_table(table_record(keys=keys)), SECRET)
    with pytest.raises(Unauthenticated, match="revoked"):
        authenticator.authenticate(f"Bearer {ALPHA_KEY}", "invoke")


def test_a_role_that_the_key_lacks_is_forbidden() -> None:
    with pytest.raises(Forbidden, match="ops-1 lacks the role invoke") as caught:
        AUTHENTICATOR.authenticate(f"Bearer {OPS_KEY}", "invoke")
    assert caught.value.reason == "role"
    assert AUTHENTICATOR.authenticate(f"Bearer {OPS_KEY}", "admin").claim.tenant == ""


def test_a_key_opens_up_to_its_expiry_and_not_at_it() -> None:
    keys = [
        {
            "id": "alpha-1",
            "tenant": "alpha",
            "sha256": hash_key(ALPHA_KEY),
            "expires": "2027-01-31T00:00:00Z",
        }
    ]
    wall = [datetime(2027, 1, 30, 23, 59, 59, tzinfo=UTC).timestamp()]
    table = parse_table(table_record(keys=keys))
    authenticator = Authenticator(table, SECRET, wall=lambda: wall[0])
    assert authenticator.authenticate(f"Bearer {ALPHA_KEY}", "invoke").claim.tenant == "alpha"
    wall[0] += 1
    with pytest.raises(Unauthenticated, match="alpha-1 expired at 2027-01-31") as caught:
        authenticator.authenticate(f"Bearer {ALPHA_KEY}", "invoke")
    assert (caught.value.status, caught.value.wire_code) == (401, "invalid_api_key")


def test_a_revocation_beats_the_table_until_it_is_taken_back() -> None:
    authenticator = Authenticator(parse_table(table_record()), SECRET)
    authenticator.revoke(frozenset({"alpha-1"}))
    with pytest.raises(Unauthenticated, match="alpha-1 has been revoked") as caught:
        authenticator.authenticate(f"Bearer {ALPHA_KEY}", "invoke")
    assert (caught.value.status, caught.value.wire_code) == (401, "invalid_api_key")
    assert authenticator.authenticate(f"Bearer {BETA_KEY}", "invoke").claim.tenant == "beta"
    authenticator.revoke(frozenset())
    assert authenticator.authenticate(f"Bearer {ALPHA_KEY}", "invoke").claim.tenant == "alpha"


def test_a_tenants_second_key_opens_while_its_first_is_revoked() -> None:
    keys = [*table_record()["keys"]]
    keys.append({"id": "alpha-2", "tenant": "alpha", "sha256": hash_key("my_alpha-2_" + "s" * 16)})
    table = parse_table(table_record(keys=keys))
    authenticator = Authenticator(table, SECRET, revoked=frozenset({"alpha-1"}))
    caller = authenticator.authenticate(f"Bearer my_alpha-2_{'s' * 16}", "invoke")
    assert (caller.claim.tenant, caller.claim.key_id) == ("alpha", "alpha-2")


@pytest.mark.parametrize("wrong", [f"{ALPHA_KEY}x", ALPHA_KEY[:-1], "my_alpha-1_" + "x" * 30])
def test_a_wrong_secret_learns_nothing_of_a_revoked_key(wrong: str) -> None:
    authenticator = Authenticator(parse_table(table_record()), SECRET)
    authenticator.revoke(frozenset({"alpha-1"}))
    with pytest.raises(Unauthenticated, match="the key is unknown"):
        authenticator.authenticate(f"Bearer {wrong}", "invoke")


@pytest.mark.parametrize("key", ["\ud800", "my_alpha-1_\u00e9", "x" * 1_000_000, ""])
def test_what_no_key_looks_like_is_unknown(key: str) -> None:
    with pytest.raises(Unauthenticated, match="unknown"):
        AUTHENTICATOR.authenticate(f"Bearer {key}", "invoke")


def test_the_hash_that_decides_is_compared_in_constant_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[str, str]] = []
    real = hmac.compare_digest

    def counted(one: str, other: str) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr("modelyard.tenancy.authenticator.hmac.compare_digest", counted)
    AUTHENTICATOR.authenticate(f"Bearer {ALPHA_KEY}", "invoke")
    with pytest.raises(Unauthenticated):
        AUTHENTICATOR.authenticate("Bearer my_nobody_at-all-has-this", "invoke")
    assert [len(one) == len(other) == 64 for one, other in compared] == [True, True]


def test_the_claim_carries_the_tenants_entitlements() -> None:
    tenants = {
        "alpha": {
            "models": ["chat"],
            "arms": ["stable"],
            "max_context_tokens": 512,
            "features": ["tools"],
        },
        "beta": {"models": ["chat"]},
    }
    authenticator = Authenticator(parse_table(table_record(tenants=tenants)), SECRET)
    claim = authenticator.authenticate(f"Bearer {ALPHA_KEY}", "invoke").claim
    assert (claim.arms, claim.max_context_tokens, claim.features) == (("stable",), 512, ("tools",))
    claim = authenticator.authenticate(f"Bearer {BETA_KEY}", "invoke").claim
    assert (claim.arms, claim.max_context_tokens, claim.features) == (
        ("stable", "canary"),
        None,
        None,
    )


def of_tokens(path: Path, **changes: object) -> tuple[Authenticator, JwksSource]:
    """An authenticator that trusts one issuer, whose keys are in a file."""
    record = {"issuer": NAME, "audience": AUDIENCE, "jwks": path.as_uri()} | changes
    table = parse_table(table_record(issuers=[record]))
    source = JwksSource()
    source.follow(table.issuers)
    return Authenticator(table, SECRET, wall=lambda: NOW, signing_keys=source), source


async def test_a_token_is_a_caller_like_a_key(issuer: InMemoryIssuer, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(issuer.jwks())
    authenticator, _ = of_tokens(path)
    caller = await authenticator.admit(f"Bearer {issuer.token(NOW, 'RS256')}", "invoke")
    assert caller.claim.tenant == "alpha"
    assert await authenticator.admit(f"Bearer {ALPHA_KEY}", "invoke")
    with pytest.raises(Forbidden, match="lacks the role admin"):
        await authenticator.admit(f"Bearer {issuer.token(NOW)}", "admin")
    authenticator.revoke(frozenset({f"jwt:{NAME}"}))
    with pytest.raises(Unauthenticated, match="revoked"):
        await authenticator.admit(f"Bearer {issuer.token(NOW)}", "invoke")


@pytest.mark.usefixtures("patient")
async def test_the_first_token_of_a_rotated_key_is_admitted(
    issuer: InMemoryIssuer, rotated: InMemoryIssuer, tmp_path: Path
) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(issuer.jwks())
    authenticator, _ = of_tokens(path)
    await authenticator.admit(f"Bearer {issuer.token(NOW)}", "invoke")
    path.write_bytes(rotated.jwks())
    caller = await authenticator.admit(f"Bearer {rotated.token(NOW)}", "invoke")
    assert caller.claim.tenant == "alpha"
    # A token verified before is of a key that its issuer has withdrawn.
    with pytest.raises(Unauthenticated, match="not known here"):
        await authenticator.admit(f"Bearer {issuer.token(NOW)}", "invoke")


async def test_a_token_where_no_issuer_is_trusted_is_refused(issuer: InMemoryIssuer) -> None:
    with pytest.raises(Unauthenticated, match="not valid here"):
        await AUTHENTICATOR.admit(f"Bearer {issuer.token(NOW)}", "invoke")
