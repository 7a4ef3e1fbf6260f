"""The arguments of control's verbs, checked at the ingress and again by control."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from modelyard.config.frozen import Frozen, TenantName
from modelyard.config.rollout import RolloutId
from modelyard.config.tenants import KeyId
from modelyard.control.published import OverrideKind

MAX_EXPIRY_S: Final = 7 * 86_400.0
MAX_JUDGEMENTS: Final = 1000  # of one call; a golden set is sent in parts

Reason = Annotated[str, Field(min_length=1, max_length=500)]


class Arguments(Frozen):
    """Strict: `"50"` for a percent is a mistake, not 50."""

    model_config = ConfigDict(strict=True)


class WeightBody(Arguments):
    """percent: of conversations on the canary. finish: it never changes again, at 0 or 100."""

    percent: float = Field(ge=0, le=100, allow_inf_nan=False)
    reason: Reason
    finish: bool = False


class SetWeight(WeightBody):
    rollout: RolloutId


class RolloutBody(Arguments):
    """Of each verb on a rollout."""

    reason: Reason


class OnRollout(RolloutBody):
    rollout: RolloutId


class OfRollout(Arguments):
    """A question about one rollout."""

    rollout: RolloutId


class GoldenJudgement(Arguments):
    """unit: what is judged once, a prompt of the golden set on this arm. pair: joins both arms'."""

    unit: str = Field(min_length=1, max_length=128)
    arm: Literal["stable", "canary"]
    good: bool
    pair: str = Field(default="", max_length=128)


class JudgementsBody(Arguments):
    # Not strict: JSON has lists and no tuples. What is in them is.
    judgements: tuple[GoldenJudgement, ...] = Field(
        min_length=1, max_length=MAX_JUDGEMENTS, strict=False
    )
    source: Literal["replay"] = "replay"


class Judgements(JudgementsBody):
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
