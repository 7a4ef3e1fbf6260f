import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.routes import Route
from modelyard.routing.arms import ArmChoice, bucket, choose_arm, may_use_canary
from modelyard.routing.pins import FIRST_TURN, Pin, Turn
from modelyard.routing.steering import Steering

BOTH = ("stable", "canary")
TEXT = st.text(max_size=20)
PERCENT = st.floats(0, 100)


def route(**rollout: Any) -> Route:
    return Route.model_validate(
        {"stable": "gen@1", "canary": "gen@2", "rollout": {"id": "r-1"} | rollout}
    )


def arm_of(
    key: str = "c",
    *,
    percent: float | None = 100,
    tenant: str = "acme",
    arms: tuple[str, ...] = BOTH,
    nonce: str = "",
    one: Route | None = None,
    turn: Turn = FIRST_TURN,
    may_split: bool = True,
    finished: bool = False,
    shadows: bool = False,
) -> ArmChoice:
    steering = steering_of(percent, finished=finished, shadows=shadows)
    return choose_arm(one or route(), tenant, arms, steering, key, nonce, turn, may_split=may_split)


def steering_of(
    percent: float | None, *, finished: bool = False, shadows: bool = False
) -> Steering:
    return Steering(
        {} if percent is None else {"r-1": percent},
        finished=frozenset(["r-1"] if finished else []),
        shadows={"r-1": 10.0} if shadows else {},
    )


def test_the_share_of_the_seeds_own_example() -> None:
    salt = "rollout-2026-10"
    values = [bucket(salt, "acme", f"conv-{n}") for n in range(100_000)]
    assert round(sum(value < 0.05 for value in values) / 100_000, 3) == 0.049
    digest = hashlib.sha256(f"{salt}:acme:conv-1".encode()).digest()
    assert values[1] == pytest.approx(int.from_bytes(digest[:8], "big") / 2**64, abs=1e-15)


@given(TEXT, TEXT, TEXT)
def test_a_bucket_is_in_the_unit_interval_and_never_moves(salt: str, tenant: str, key: str) -> None:
    assert 0 <= bucket(salt, tenant, key) < 1
    assert bucket(salt, tenant, key) == bucket(salt, tenant, key)


@given(st.text(min_size=1, max_size=20), PERCENT, PERCENT)
def test_raising_the_weight_only_adds(key: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    if arm_of(key, percent=low).arm == "canary":
        assert arm_of(key, percent=high).arm == "canary"


@given(st.text(min_size=1, max_size=20), TEXT, TEXT, PERCENT)
def test_a_conversation_needs_no_luck(key: str, one: str, other: str, percent: float) -> None:
    assert arm_of(key, percent=percent, nonce=one) == arm_of(key, percent=percent, nonce=other)


def test_0_is_nobody_and_100_is_everybody() -> None:
    keys = [f"c{n}" for n in range(2000)]
    assert {arm_of(key, percent=0).arm for key in keys} == {"stable"}
    assert {arm_of(key, percent=100).arm for key in keys} == {"canary"}


def test_tenants_are_drawn_independently() -> None:
    drawn = [
        tuple(arm_of(f"c{n}", percent=50, tenant=tenant).arm == "canary" for tenant in ("a", "b"))
        for n in range(4000)
    ]
    both = sum(a and b for a, b in drawn) / len(drawn)
    assert both == pytest.approx(0.25, abs=0.03)


def test_the_next_rollout_draws_others() -> None:
    def share(salt: str) -> set[int]:
        return {n for n in range(4000) if bucket(salt, "acme", f"c{n}") < 0.5}

    assert len(share("r-1") & share("r-2")) / 4000 == pytest.approx(0.25, abs=0.03)


def test_without_a_key_each_request_is_drawn() -> None:
    arms = [arm_of("", percent=30, nonce=str(n)).arm for n in range(4000)]
    assert arms.count("canary") / 4000 == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (arm_of(one=Route(stable="gen@1")), "no_rollout"),
        (arm_of(one=Route(stable="gen@1", canary="gen@2")), "no_rollout"),
        (arm_of(may_split=False), "embedder"),
        (arm_of(arms=("stable",)), "not_entitled"),
        (arm_of(one=route(tenants=("other",))), "not_in_rollout"),
        (arm_of(percent=None), "no_weight"),
        (arm_of(percent=0, finished=True), "rolled_back"),
        (arm_of(percent=None, finished=True), "rolled_back"),
    ],
)
def test_who_is_not_drawn_is_stable_and_of_no_rollout(choice: ArmChoice, why: str) -> None:
    assert choice == ArmChoice("stable", why)


def test_both_arms_of_a_draw_carry_the_rollout() -> None:
    choices = [arm_of(f"c{n}", percent=50) for n in range(50)]
    assert {(one.arm, one.rollout) for one in choices} == {("stable", "r-1"), ("canary", "r-1")}


def test_a_tenant_of_the_rollout_is_drawn() -> None:
    assert arm_of(one=route(tenants=("acme",))).arm == "canary"


@pytest.mark.parametrize(("percent", "may"), [(None, False), (0, False), (0.1, True), (100, True)])
def test_a_canary_is_there_for_its_features_from_the_first_percent_on(
    percent: float | None, may: bool
) -> None:
    steering = steering_of(percent)
    assert may_use_canary(route(), "acme", BOTH, steering) is may
    assert not may_use_canary(route(), "acme", ("stable",), steering)
    assert not may_use_canary(route(), "acme", BOTH, steering_of(0, finished=True))
    assert may_use_canary(route(), "acme", BOTH, steering_of(100, finished=True))


PINS = route(conversations="pin")
TO_CANARY = Turn(Pin("gen@2", "r-1"), goes_on=True)
TO_STABLE = Turn(Pin("gen@1", "r-1"), goes_on=True)
KEYS = st.text(min_size=1, max_size=20)


@given(KEYS, st.floats(0, 100, exclude_min=True))
def test_a_pin_is_obeyed_whatever_the_weight(key: str, percent: float) -> None:
    for turn, arm in ((TO_CANARY, "canary"), (TO_STABLE, "stable")):
        choice = arm_of(key, percent=percent, one=PINS, turn=turn)
        assert (choice.arm, choice.why, choice.pin_ignored) == (arm, "pin", "")
        # Evidence is about what the draw sent to an arm.
        drawn = arm_of(key, percent=percent).arm
        assert choice.rollout == ("r-1" if drawn == arm else "")


@given(KEYS, PERCENT, PERCENT, st.booleans())
def test_a_raised_weight_never_moves_a_conversation_off_the_canary(
    key: str, one: float, other: float, pins: bool
) -> None:
    """The client sends back what it was given, as it does where conversations are pinned."""
    low, high = sorted((one, other))
    plan = PINS if pins else route()
    if arm_of(key, percent=low, one=plan).arm == "canary":
        turn = TO_CANARY if pins else Turn(goes_on=True)
        assert arm_of(key, percent=high, one=plan, turn=turn).arm == "canary"


@given(KEYS, PERCENT)
def test_a_conversation_that_goes_on_without_its_pin_is_stable_and_no_evidence(
    key: str, percent: float
) -> None:
    choice = arm_of(key, percent=percent, one=PINS, turn=Turn(goes_on=True))
    assert (choice.arm, choice.why, choice.rollout) == ("stable", "no_pin", "")
    assert arm_of(key, percent=percent, turn=Turn(goes_on=True)) == arm_of(key, percent=percent)


@given(
    key=KEYS,
    percent=st.sampled_from([0, None]),
    finished=st.booleans(),
    turn=st.sampled_from([FIRST_TURN, Turn(goes_on=True), TO_CANARY, TO_STABLE]),
    plan=st.sampled_from([PINS, route()]),
)
def test_nobody_is_on_a_canary_that_was_rolled_back_or_that_control_says_nothing_of(
    key: str, percent: float | None, finished: bool, turn: Turn, plan: Route
) -> None:
    assert arm_of(key, percent=percent, finished=finished, turn=turn, one=plan).arm == "stable"


@pytest.mark.parametrize(
    ("turn", "percent", "why"),
    [
        (TO_CANARY, 0, "rolled_back"),
        (TO_CANARY, None, "unknown_version"),
        (Turn(Pin("gen@3", "r-1"), goes_on=True), 50, "unknown_version"),
        (Turn(Pin("gen@2", "r-0"), goes_on=True), 50, "unknown_version"),
        (Turn(refused="invalid", goes_on=True), 50, "invalid"),
    ],
)
def test_a_pin_that_cannot_be_followed_says_why_and_is_stable(
    turn: Turn, percent: float | None, why: str
) -> None:
    choice = arm_of(percent=percent, one=PINS, turn=turn)
    assert (choice.arm, choice.why, choice.pin_ignored) == ("stable", "no_pin", why)


def test_a_forged_pin_on_a_first_turn_leaves_the_draw_as_it_is() -> None:
    choice = arm_of(percent=100, one=PINS, turn=Turn(refused="invalid"))
    assert (choice.arm, choice.why, choice.pin_ignored) == ("canary", "weight", "invalid")


def test_a_pin_opens_no_canary_to_a_tenant_without_it() -> None:
    for choice in (
        arm_of(one=PINS, turn=TO_CANARY, arms=("stable",)),
        arm_of(one=route(conversations="pin", tenants=("other",)), turn=TO_CANARY),
    ):
        assert (choice.arm, choice.pin_ignored) == ("stable", "unknown_version")


def test_the_next_rollout_keeps_a_pin_to_the_version_that_became_stable() -> None:
    after = Route.model_validate(
        {"stable": "gen@2", "canary": "gen@3", "rollout": {"id": "r-2", "conversations": "pin"}}
    )
    assert arm_of(one=after, turn=TO_CANARY).arm == "stable"
    assert arm_of(one=after, turn=TO_STABLE).pin_ignored == "unknown_version"


def test_a_promoted_canary_has_everybody_but_those_who_are_pinned_to_stable() -> None:
    for turn in (FIRST_TURN, Turn(goes_on=True), TO_CANARY):
        choice = arm_of(percent=100, finished=True, one=PINS, turn=turn)
        assert (choice.arm, choice.rollout) == ("canary", "")
    assert arm_of(percent=100, finished=True, one=PINS, turn=TO_STABLE).arm == "stable"


def test_while_it_only_shadows_everybody_is_stable_and_may_be_copied() -> None:
    choice = arm_of(percent=None, shadows=True)
    assert (choice.arm, choice.why, choice.rollout) == ("stable", "shadow", "r-1")
    assert arm_of(percent=None, shadows=True, arms=("stable",)).rollout == ""
