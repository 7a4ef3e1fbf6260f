import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.table import parse_table
from modelyard.contract.errors import Forbidden, Unauthenticated
from modelyard.tenancy.authenticator import Authenticator
from modelyard.tenancy.claim import Claim, verify
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    BETA_KEY,
    EVALUATOR_KEY,
    OPS_KEY,
    SECRET,
    table_record,
)

AUTHENTICATOR = Authenticator(parse_table(table_record()), SECRET)


def test_a_key_becomes_the_claim_of_its_tenant() -> None:
    caller = AUTHENTICATOR.authenticate(f"Bearer {ALPHA_KEY}", "invoke")
    assert caller.claim == Claim(
        "alpha", "alpha-1", "paid", "eu", "interactive", ("invoke",), ("*",)
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
