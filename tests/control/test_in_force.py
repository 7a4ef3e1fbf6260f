from __future__ import annotations

from dataclasses import replace

import pytest

from modelyard.control import in_force
from modelyard.control.in_force import InForce
from modelyard.control.published import Override, Published, RouteLimit, aged

DRAIN = Override("drain", "gen@1.0.0--b", None, "ops-1", "a test", 30.0)


class Clock:
    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def test_without_any_word_nothing_is_in_force() -> None:
    nothing = InForce(Clock())
    assert not nothing.steering.weights
    assert not nothing.revoked
    assert not nothing.steering.drained
    assert nothing.order == (0, 0)
    assert not nothing.take(None)


def test_a_later_word_replaces_an_earlier_one_and_never_the_other_way() -> None:
    word = InForce(Clock())
    assert word.take(Published(2, 7, (("r", 5.0),), frozenset({"k"})))
    assert not word.take(Published(1, 9, (("r", 50.0),)))
    assert not word.take(Published(2, 6))
    assert (word.steering.weights, word.order) == ({"r": 5.0}, (2, 7))
    assert word.revoked == {"k"}


def test_the_same_word_again_is_no_news() -> None:
    word = InForce(Clock())
    assert word.take(Published(1, 1))
    assert not word.take(Published(1, 1))
    assert word.take(Published(1, 2))


def test_a_board_that_lost_everything_takes_nothing_back() -> None:
    word = InForce(Clock())
    word.take(Published(1, 1, (("r", 5.0),), frozenset({"k"})))
    assert not word.take(None)
    assert word.revoked == {"k"}
    assert word.steering.weights == {"r": 5.0}


def test_an_override_ends_on_time_while_nobody_speaks() -> None:
    clock = Clock()
    word = InForce(clock)
    word.take(Published(1, 1, overrides=(DRAIN,)))
    clock.now_s += 29.0
    assert word.steering.drained == {"gen@1.0.0--b"}
    clock.now_s += 1.0
    assert word.steering.drained == frozenset()


def test_an_order_to_one_replica_closes_no_app() -> None:
    word = InForce(Clock())
    word.take(Published(1, 1, overrides=(replace(DRAIN, target="replica:r1"),)))
    assert word.steering.drained == frozenset()


def test_hearing_the_same_word_again_renews_what_is_left_of_an_override() -> None:
    """Control says each second what is left; an ingress does not count from the first time."""
    clock = Clock()
    word = InForce(clock)
    word.take(Published(1, 1, overrides=(DRAIN,)))
    clock.now_s += 20.0
    word.take(Published(1, 1, overrides=(DRAIN,)))
    clock.now_s += 20.0
    assert word.steering.drained == {"gen@1.0.0--b"}


def test_a_board_that_knows_less_is_told() -> None:
    word = InForce(Clock())
    assert word.to_tell is None
    word.take(Published(2, 7, revoked=frozenset({"k"})))
    assert word.to_tell is None, "the board itself said so"
    word.take(None)
    assert word.to_tell is not None
    assert word.to_tell.revoked == {"k"}
    word.take(Published(1, 1))
    assert word.to_tell is not None
    word.take(Published(3, 1))
    assert word.to_tell is None


def test_a_limit_of_a_route_is_in_force_until_its_time_and_a_tenants_is_none() -> None:
    clock = Clock()
    word = InForce(clock)
    assert word.route_limits == {}
    limits = [
        Override("limit", target, value, "ops-1", "a test", left_s)
        for target, value, left_s in (
            ("route:team/embed/max_queued_requests", 12.0, 30.0),
            ("route:chat/max_queued_tokens", 4096.0, 60.0),
            ("alpha/requests_per_min", 5.0, 60.0),
        )
    ]
    word.take(Published(1, 1, overrides=(DRAIN, *limits)))
    chat = RouteLimit("chat", "max_queued_tokens")
    assert word.route_limits == {RouteLimit("team/embed", "max_queued_requests"): 12, chat: 4096}
    clock.now_s += 30.0
    assert word.route_limits == {chat: 4096}
    clock.now_s += 30.0
    assert word.route_limits == {}


def test_what_steers_is_made_when_a_word_comes_and_when_an_override_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every request asks for it: nothing is aged for each."""
    times: list[float] = []

    def counted(published: Published, age_s: float) -> Published:
        times.append(age_s)
        return aged(published, age_s)

    monkeypatch.setattr(in_force, "aged", counted)
    clock = Clock()
    word = InForce(clock)
    later = replace(DRAIN, target="gen@1.0.0--c", left_s=40.0)
    word.take(Published(1, 1, (("r", 5.0),), overrides=(DRAIN, later), shadows=(("s", 2.0),)))
    first = word.steering
    assert (first.weights, first.shadows) == ({"r": 5.0}, {"s": 2.0})
    assert first.drained == {"gen@1.0.0--b", "gen@1.0.0--c"}
    clock.now_s += 29.9
    assert word.steering is first
    assert times == [0.0]
    clock.now_s += 0.2
    assert word.steering.drained == {"gen@1.0.0--c"}
    assert word.steering is word.steering
    assert len(times) == 2
    clock.now_s += 10.0
    assert word.steering.drained == frozenset()
    clock.now_s += 1000.0
    assert word.steering.weights == {"r": 5.0}
    assert len(times) == 3


def test_a_drain_of_a_swap_area_says_that_the_model_makes_room() -> None:
    word = InForce(Clock())
    swapped = replace(DRAIN, target="gen@1.0.0", author="swap:d1")
    word.take(Published(1, 1, overrides=(DRAIN, swapped), loads=(("gen@1.0.0", 12.0),)))
    assert word.steering.drained == {"gen@1.0.0--b", "gen@1.0.0"}
    assert word.steering.unloading == {"gen@1.0.0"}
    assert word.steering.loads == {"gen@1.0.0": 12.0}
