from dataclasses import replace

import pytest

from modelyard.contract.envelope import Envelope
from modelyard.contract.errors import Forbidden
from modelyard.tenancy.claim import Claim
from modelyard.tenancy.entitlements import require_context, require_entitled

CLAIM = Claim("alpha", "alpha-1", "paid", "eu", "interactive", ("invoke",), ("chat",))
ENVELOPE = Envelope("c", "gen@1", "chat", b"{}", False, 1000, "batch", "r", "a", "chat")
EVALUATOR = replace(CLAIM, roles=("invoke", "evaluate"), models=())


def test_a_request_within_the_claim_passes() -> None:
    require_entitled(CLAIM, ENVELOPE)
    require_entitled(replace(CLAIM, models=("*",)), replace(ENVELOPE, model_alias="any"))
    require_entitled(replace(CLAIM, arms=("stable", "canary")), replace(ENVELOPE, arm="canary"))


@pytest.mark.parametrize("alias", ["other", "gen@1", "gen@2", ""])
def test_a_model_outside_the_claim_is_forbidden(alias: str) -> None:
    with pytest.raises(Forbidden, match="may not use") as caught:
        require_entitled(CLAIM, replace(ENVELOPE, model_alias=alias))
    assert (caught.value.reason, caught.value.param) == ("entitlement", "model")


def test_only_an_evaluator_may_name_a_version_and_only_the_one_that_answers() -> None:
    require_entitled(EVALUATOR, replace(ENVELOPE, model_alias="gen@1"))
    for alias in ("gen@2", "chat"):
        with pytest.raises(Forbidden):
            require_entitled(EVALUATOR, replace(ENVELOPE, model_alias=alias))


@pytest.mark.parametrize("arm", ["canary", "shadow", ""])
def test_an_arm_outside_the_claim_is_forbidden(arm: str) -> None:
    with pytest.raises(Forbidden, match="arm") as caught:
        require_entitled(CLAIM, replace(ENVELOPE, arm=arm))
    assert caught.value.reason == "entitlement"


@pytest.mark.parametrize(
    ("limit", "tokens", "cap"), [(None, 10**9, 10**9), (10, 10, 0), (10, 7, 3)]
)
def test_a_context_within_the_entitlement_passes(limit: int | None, tokens: int, cap: int) -> None:
    require_context(limit, tokens, "messages", cap)


@pytest.mark.parametrize(("tokens", "cap"), [(11, 0), (8, 3), (1, 10)])
def test_a_context_above_the_entitlement_is_forbidden_with_its_field(tokens: int, cap: int) -> None:
    with pytest.raises(Forbidden, match=f"{tokens} tokens.*may use 10") as caught:
        require_context(10, tokens, "messages", cap)
    assert (caught.value.status, caught.value.reason) == (403, "entitlement")
    assert caught.value.param == "messages"
