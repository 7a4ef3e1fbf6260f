"""What a claim allows, checked again where the work is done. Raises Forbidden."""

from __future__ import annotations

from modelyard.contract.envelope import Envelope
from modelyard.contract.errors import Forbidden
from modelyard.tenancy.claim import Claim


def require_entitled(claim: Claim, envelope: Envelope) -> None:
    """The arm and the model. The ingress has checked both: this stops what came another way.

    A version named outright is an evaluator's, whose tenant's models the ingress alone can check:
    which alias a version answers is in the table, and a replica has none.
    """
    alias = envelope.model_alias
    named = alias == envelope.version and "evaluate" in claim.roles
    if not named and not claim.may_use(alias):
        raise Forbidden(
            f"the tenant {claim.tenant} may not use {alias!r}", param="model", reason="entitlement"
        )
    if envelope.arm not in claim.arms:
        raise Forbidden(
            f"the tenant {claim.tenant} may not use the {envelope.arm} arm of {alias!r}",
            param="model",
            reason="entitlement",
        )


def require_context(
    max_context_tokens: int | None, tokens: int, param: str, cap_tokens: int = 0
) -> None:
    """One input of `tokens`, whose answer may come to hold `cap_tokens` more.

    param: the field of the request that holds the input.
    """
    if max_context_tokens is None or tokens + cap_tokens <= max_context_tokens:
        return
    cap = f" and an output cap of {cap_tokens}" if cap_tokens else ""
    raise Forbidden(
        f"{param} has {tokens} tokens{cap}, your tenant may use {max_context_tokens} in one "
        "request: ask for less",
        param=param,
        reason="entitlement",
    )
