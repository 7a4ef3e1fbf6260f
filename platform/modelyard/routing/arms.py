"""Which arm of a rollout a conversation is on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from modelyard.config.frozen import Arm
from modelyard.config.routes import Route
from modelyard.contract.operations import Kind

STABLE: Final[Arm] = "stable"
CANARY: Final[Arm] = "canary"


@dataclass(frozen=True, slots=True)
class ArmChoice:
    """An arm and why. `rollout`: the id of the rollout whose weight decided it, else empty.

    Both arms of a split carry the id, since a gate compares what the same draw sent to each.
    bucket: in [0, 1); percent: of conversations on the canary; None where no weight was asked.
    """

    arm: Arm
    why: str
    rollout: str = ""
    bucket: float | None = None
    percent: float | None = None


def bucket(salt: str, tenant: str, key: str) -> float:
    """A stable value in [0, 1) for a conversation, so that retries and later turns agree."""
    text = f"{salt}:{tenant}:{key}".encode("utf-8", "surrogatepass")
    # 53 bits: all 64 round up to 1.0 once in a while, and that is on no arm.
    return (int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 11) / 2**53


def choose_arm(
    route: Route,
    kind: Kind | None,
    tenant: str,
    arms: tuple[str, ...],
    weights: Mapping[str, float],
    key: str,
    nonce: str,
) -> ArmChoice:
    """The arm of a request.

    `arms`: those the caller is entitled to. `weights`: percent on the canary by rollout id. `key`:
    the conversation, or "" for none: then `nonce`, which differs from request to request, decides.
    The salt is the rollout's id, so that the next rollout draws other conversations.
    """
    rollout = route.rollout
    if route.canary is None or rollout is None:
        return ArmChoice(STABLE, "no_rollout")
    if kind is Kind.EMBEDDER:
        # Vectors of two models cannot be compared: a split would break every index built of them.
        return ArmChoice(STABLE, "embedder")
    if CANARY not in arms:
        return ArmChoice(STABLE, "not_entitled")
    if rollout.tenants is not None and tenant not in rollout.tenants:
        return ArmChoice(STABLE, "not_in_rollout")
    percent = weights.get(rollout.id)
    if percent is None:
        return ArmChoice(STABLE, "no_weight")
    drawn = bucket(rollout.id, tenant, key or nonce)
    arm = CANARY if drawn < percent / 100 else STABLE
    return ArmChoice(arm, "weight", rollout.id, drawn, percent)


def may_use_canary(
    route: Route, kind: Kind, tenant: str, arms: tuple[str, ...], weights: Mapping[str, float]
) -> bool:
    """Whether some weight above 0 would put this caller on the canary.

    At 0 nothing but an evaluator reaches a canary: it has not begun, or it was rolled back.
    """
    at_all = choose_arm(route, kind, tenant, arms, weights, "", "")
    return bool(at_all.percent)
