"""An app that still answers somebody, or may have to, is not dropped by a file that forgot it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modelyard.config.table import Table, parse_table
from modelyard.control.ingress_post import IngressPost
from modelyard.control.published import Override, Published
from modelyard.control.reading import IngressEntry, Reading
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post
from modelyard.testing.in_memory import post
from placement.refusals import refusals
from placement.serving import Platform

OLD, NEW = "gen@1.0.0", "gen@1.1.0"
READY = (post(OLD), post(NEW, replica="r2"))
EMPTY = Reading(READY, (), (), None, None, 60.0)


def table(**routes: Any) -> Table:
    return parse_table({"schema": "modelyard/table/v1", "routes": routes})


DEPLOYED = table(chat={"stable": OLD, "canary": NEW, "rollout": {"id": "r-1"}})
OTHER = table(embed={"stable": "emb@1.0.0"})


def reading(percent: float = 0.0, *overrides: Override, busy: int = 0, **more: Any) -> Reading:
    published = Published(1, 1, (("r-1", percent),), overrides=overrides)
    ingress = IngressPost("i", "d", True, in_flight=((OLD, busy),) if busy else ())
    return replace(EMPTY, published=published, ingresses=(IngressEntry(ingress, 0.1),), **more)


def why(
    app: str,
    seen: Reading | None,
    *,
    kept: dict[str, int] | None = None,
    wanted: Table = OTHER,
    deployed: Table | None = DEPLOYED,
) -> str:
    found = refusals([app], kept or {}, wanted, Platform(deployed, seen))
    assert all(one.app == app for one in found)
    assert len(found) < 2
    return found[0].why if found else ""


def test_a_stable_version_is_kept_while_its_alias_is() -> None:
    words = why(OLD, reading(), wanted=table(chat={"stable": "next@2.0.0"}))
    assert words.startswith("it is the stable version of chat, with 100 % of its requests")


def test_a_stable_version_goes_with_its_alias_once_nobody_is_answered() -> None:
    assert why(OLD, reading()) == ""
    assert why(OLD, reading(busy=2)).startswith("it is the stable version of chat")


def test_a_canary_with_a_weight_is_kept_and_one_without_goes() -> None:
    wanted = table(chat={"stable": OLD})
    words = why(NEW, reading(5.0), wanted=wanted)
    assert words.startswith("it is the canary of chat, with 5 % of its requests")
    assert why(NEW, reading(0.0), wanted=wanted) == ""


def test_after_a_promotion_the_old_version_goes_and_the_new_one_is_kept() -> None:
    wanted = table(chat={"stable": NEW})
    assert why(OLD, reading(100.0), wanted=wanted) == ""
    assert "canary of chat, with 100 %" in why(NEW, reading(100.0), wanted=wanted)


@pytest.mark.parametrize("app", [OLD, NEW])
def test_what_a_rollout_keeps_is_kept(app: str) -> None:
    floor = Override("floor", app, 1.0, "rollout:r-1", "a rolled back canary is kept", 120.0)
    words = why(app, reading(100.0 if app == OLD else 0.0, floor))
    assert words.startswith("rollout:r-1 keeps it for 120 s more (a rolled back canary is kept)")


def test_an_operators_floor_keeps_nothing_from_being_dropped() -> None:
    floor = Override("floor", NEW, 1.0, "ops-1", "a launch", 120.0)
    assert why(NEW, reading(0.0, floor)) == ""


@pytest.mark.parametrize("app", [OLD, f"{OLD}--b", f"{OLD}--c"])
def test_every_cell_of_a_version_that_moves_is_kept(app: str) -> None:
    drain = Override("drain", f"{OLD}--b", None, "ops-1", "move: to d2", 60.0)
    words = why(app, reading(0.0, drain), kept={OLD: 1})
    assert words.startswith(f"a move of {OLD} goes on (move: to d2, by ops-1)")


def test_a_drain_of_an_operator_is_no_move() -> None:
    drain = Override("drain", f"{OLD}--b", None, "ops-1", "repair", 60.0)
    assert why(f"{OLD}--b", reading(0.0, drain), kept={OLD: 1}) == ""


def test_a_cell_goes_when_its_version_stays_and_it_answers_nobody() -> None:
    cell = f"{OLD}--b"
    wanted = table(chat={"stable": OLD})
    assert why(cell, reading(busy=3), kept={OLD: 1}, wanted=wanted) == ""
    busy = replace(post(cell).report, ongoing=2)
    seen = reading(posts=(*READY, Post(busy, 0.1)))
    words = why(cell, seen, kept={OLD: 1}, wanted=wanted)
    assert words.startswith(f"2 requests are in this cell: `modelyard override add drain {cell}`")


def test_a_version_of_no_route_is_kept_only_while_it_answers() -> None:
    assert why(OLD, reading(), deployed=None) == ""
    assert why(OLD, reading(busy=1), deployed=None).startswith(f"1 requests to {OLD} are in flight")


@pytest.mark.parametrize("app", [OLD, NEW])
@pytest.mark.parametrize(
    ("seen", "words"),
    [(None, "the board cannot be read"), (replace(EMPTY, up_s=1.0), "the board has just started")],
)
def test_what_an_unknown_board_may_route_is_kept(
    app: str, seen: Reading | None, words: str
) -> None:
    assert f"it is in the route of chat, and {words}" in why(app, seen)
    assert f"it is maybe in a route, and {words}" in why(app, seen, deployed=None)
    assert words in why(f"{app}--b", seen, kept={app: 1})
    assert why("other@1.0.0", seen) == ""


@pytest.mark.parametrize("app", [OLD, NEW])
def test_a_version_of_a_rollout_is_kept_until_control_has_said_its_weight(app: str) -> None:
    assert "control has not said the weight of r-1" in why(app, EMPTY)
    assert "control has not spoken yet" in why(app, EMPTY, kept={f"{app}--b": 1})
    assert why(OLD, EMPTY, deployed=table(chat={"stable": OLD})) == ""


def cells(**ready: int) -> Reading:
    """Ready replicas by cell of OLD: `a` is the one without a letter."""
    posts = [
        post(OLD if letter == "a" else f"{OLD}--{letter}", replica=f"{letter}{number}")
        for letter, count in ready.items()
        for number in range(count)
    ]
    return reading(posts=tuple(posts))


def test_the_only_ready_cell_of_a_version_is_kept() -> None:
    kept = {f"{OLD}--b": 0}
    assert "have 0 of at least 1 replicas ready" in why(OLD, cells(a=1), kept=kept)
    assert why(OLD, cells(a=1, b=1), kept=kept) == ""
    assert why(OLD, cells(), kept=kept) == ""


def test_a_cell_is_kept_until_the_others_have_their_least() -> None:
    kept = {f"{OLD}--b": 2, f"{OLD}--c": 1}
    assert "have 2 of at least 3 replicas ready" in why(OLD, cells(a=1, b=1, c=1), kept=kept)
    assert why(OLD, cells(a=1, b=2, c=1), kept=kept) == ""


def test_a_drained_cell_takes_nobody_over() -> None:
    drain = Override("drain", f"{OLD}--b", None, "ops-1", "repair", 60.0)
    seen = replace(reading(0.0, drain), posts=cells(a=1, b=1).posts)
    assert "have 0 of at least 1 replicas ready" in why(OLD, seen, kept={f"{OLD}--b": 1})


def test_what_died_holds_nothing_back() -> None:
    """The board keeps a last post for two minutes, with the requests that died with it."""
    dead = IngressEntry(IngressPost("i-0", "d", True, in_flight=((OLD, 4),)), 100.0)
    seen = reading()
    assert why(OLD, replace(seen, ingresses=(*seen.ingresses, dead)), deployed=None) == ""
    lost = Post(replace(post(f"{OLD}--b").report, ongoing=3), 100.0)
    assert why(f"{OLD}--b", reading(posts=(*READY, lost)), kept={OLD: 1}) == ""
    wanted = table(chat={"stable": "next@2.0.0"})
    assert why(OLD, reading(posts=(post(OLD, age_s=100.0),)), wanted=wanted) == ""


def test_a_version_that_never_came_up_carries_nothing() -> None:
    wanted = table(chat={"stable": "next@2.0.0"})
    for posts in ((), (post(OLD, phase=Phase.LOADING),)):
        assert why(OLD, replace(EMPTY, posts=posts), wanted=wanted) == ""
