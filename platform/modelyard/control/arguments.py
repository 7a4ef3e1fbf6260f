"""The arguments of control's verbs, checked at the ingress and again by control."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from modelyard.config.frozen import Frozen, TenantName
from modelyard.config.rollout import RolloutId
from modelyard.config.tenants import KeyId
from modelyard.control.published import OverrideKind

MAX_EXPIRY_S: Final = 7 * 86_400.0

Reason = Annotated[str, Field(min_length=1, max_length=500)]


class Arguments(Frozen):
    """Strict: `"50"` for a percent is a mistake, not 50."""

    model_config = ConfigDict(strict=True)


class WeightBody(Arguments):
    """percent: of conversations on the canary. finish: it never changes again."""

    percent: float = Field(ge=0, le=100, allow_inf_nan=False)
    reason: Reason
    finish: bool = False


class SetWeight(WeightBody):
    rollout: RolloutId


class RevokeBody(Arguments):
    reason: Reason = "revoked by an operator"


class Revoke(RevokeBody):
    key: KeyId


class AddOverride(Arguments):
    """value: tokens, requests or sequences of a `limit`, replicas of a `floor` or `ceiling`.

    target: as in published.Override.
    """

    kind: OverrideKind
    target: str = Field(min_length=1, max_length=256)
    value: float | None = Field(default=None, ge=0, le=10**12, allow_inf_nan=False)
    expires_in_s: float = Field(ge=1, le=MAX_EXPIRY_S, allow_inf_nan=False)
    reason: Reason


class RemoveOverride(Arguments):
    id: str = Field(min_length=1, max_length=300)


class OfTenant(Arguments):
    """tenant: left out, all of them."""

    tenant: TenantName | None = None


class Release(Arguments):
    reason: Reason = "released by an operator"
