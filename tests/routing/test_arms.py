import hashlib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.routes import Route
from modelyard.contract.operations import Kind
from modelyard.routing.arms import ArmChoice, bucket, choose_arm, may_use_canary

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
    kind: Kind = Kind.GENERATOR,
    nonce: str = "",
    one: Route | None = None,
) -> ArmChoice:
    weights: Mapping[str, float] = {} if percent is None else {"r-1": percent}
    return choose_arm(one or route(), kind, tenant, arms, weights, key, nonce)


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
        (arm_of(kind=Kind.EMBEDDER), "embedder"),
        (arm_of(arms=("stable",)), "not_entitled"),
        (arm_of(one=route(tenants=("other",))), "not_in_rollout"),
        (arm_of(percent=None), "no_weight"),
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
    weights = {} if percent is None else {"r-1": percent}
    assert may_use_canary(route(), Kind.GENERATOR, "acme", BOTH, weights) is may
    assert not may_use_canary(route(), Kind.GENERATOR, "acme", ("stable",), weights)
