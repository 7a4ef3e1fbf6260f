"""Which arm of a rollout a conversation is on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Final

from modelyard.config.frozen import Arm
from modelyard.config.routes import Route
from modelyard.routing.pins import FIRST_TURN, Turn, pins_conversations
from modelyard.routing.steering import Steering

STABLE: Final[Arm] = "stable"
CANARY: Final[Arm] = "canary"


@dataclass(frozen=True, slots=True)
class ArmChoice:
    """An arm and why. `rollout`: the id of the rollout whose weight decided it, else empty.

    Both arms of a split carry the id, since a gate compares what the same draw sent to each.
    bucket: in [0, 1); percent: of conversations on the canary; None where no weight was asked.
    pin_ignored: why a pin that came was not followed, "" where it was or none came.
    """

    arm: Arm
    why: str
    rollout: str = ""
    bucket: float | None = None
    percent: float | None = None
    pin_ignored: str = ""


def bucket(salt: str, tenant: str, key: str) -> float:
    """A stable value in [0, 1) for a conversation, so that retries and later turns agree."""
    text = f"{salt}:{tenant}:{key}".encode("utf-8", "surrogatepass")
    # 53 bits: all 64 round up to 1.0 once in a while, and that is on no arm.
    return (int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 11) / 2**53


def choose_arm(
    route: Route,
    tenant: str,
    arms: tuple[str, ...],
    steering: Steering,
    key: str,
    nonce: str,
    turn: Turn = FIRST_TURN,
    *,
    may_split: bool = True,
) -> ArmChoice:
    """The arm of a request.

    `arms`: those the caller is entitled to. `key`: the conversation, or "" for none: then `nonce`,
    which differs from request to request, decides. may_split: False where both arms' answers must
    not be mixed, as vectors of two embedding spaces. The salt is the rollout's id, so that the next
    rollout draws other conversations.
    """
    choice = _drawn(route, tenant, arms, steering, key or nonce, may_split=may_split)
    ignored = turn.refused or _why_ignored(route, choice, steering, turn)
    if pins_conversations(route):
        if turn.pin is not None and not ignored:
            return _pinned(CANARY if turn.pin.version == route.canary else STABLE, choice)
        if turn.goes_on and choice.why != "promoted":
            # Nobody knows which version began it. It counts for neither arm: the canary has no
            # such requests, whose prompts are longer than those of first turns.
            return ArmChoice(STABLE, "no_pin", "", choice.bucket, choice.percent, ignored)
    return replace(choice, pin_ignored=ignored) if ignored else choice


def _drawn(
    route: Route,
    tenant: str,
    arms: tuple[str, ...],
    steering: Steering,
    key: str,
    *,
    may_split: bool,
) -> ArmChoice:
    rollout = route.rollout
    if route.canary is None or rollout is None:
        return ArmChoice(STABLE, "no_rollout")
    if not may_split:
        return ArmChoice(STABLE, "embedder")
    if CANARY not in arms:
        return ArmChoice(STABLE, "not_entitled")
    if rollout.tenants is not None and tenant not in rollout.tenants:
        return ArmChoice(STABLE, "not_in_rollout")
    percent = steering.weights.get(rollout.id)
    if rollout.id in steering.finished and not percent:
        return ArmChoice(STABLE, "rolled_back")
    why = "weight"
    if percent is None:
        if rollout.id not in steering.shadows:
            return ArmChoice(STABLE, "no_weight")
        percent, why = 0.0, "shadow"
    drawn = bucket(rollout.id, tenant, key)
    arm = CANARY if drawn < percent / 100 else STABLE
    if rollout.id in steering.finished:  # what is decided is no evidence for anything
        return ArmChoice(arm, "promoted", "", drawn, percent)
    return ArmChoice(arm, why, rollout.id, drawn, percent)


def _pinned(arm: Arm, choice: ArmChoice) -> ArmChoice:
    """By a pin, whatever the draw says; evidence only where the draw says the same, or an arm
    would be judged by conversations that it was not drawn."""
    rollout = choice.rollout if arm == choice.arm else ""
    return ArmChoice(arm, "pin", rollout, choice.bucket, choice.percent)


def _why_ignored(route: Route, choice: ArmChoice, steering: Steering, turn: Turn) -> str:
    """A word for a pin that cannot be followed, "" for one that can, and for none."""
    pin, rollout = turn.pin, route.rollout
    if pin is None or pin.version == route.stable:
        return ""
    if pin.version != route.canary or rollout is None or pin.rollout != rollout.id:
        return "unknown_version"
    if steering.weights.get(rollout.id) == 0:
        return "rolled_back"
    # Without a weight nobody has said that the canary may answer: control and the board are away,
    # and it may have been rolled back meanwhile.
    return "" if choice.percent else "unknown_version"


def may_use_canary(route: Route, tenant: str, arms: tuple[str, ...], steering: Steering) -> bool:
    """Whether some weight above 0 would put this caller on the canary.

    At 0 nothing but an evaluator reaches a canary: it has not begun, or it was rolled back.
    """
    return bool(choose_arm(route, tenant, arms, steering, "", "").percent)
