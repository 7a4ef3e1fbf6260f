"""What operators ask of control: arguments, names, and a request that comes twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from modelyard.config.table import Table, parse_table
from modelyard.contract.errors import InvalidRequest, NotFound, RequestError
from modelyard.control.show import overrides
from modelyard.control.state import State, published
from modelyard.control.verbs import REMEMBERED, Command, execute
from modelyard.testing.in_memory import table_record

Make = Callable[..., Command]
NOW = 1_000.0


@pytest.fixture
def table() -> Table:
    record = table_record()
    record["routes"]["chat"] |= {"rollout": {"id": "r-1"}, "canary": "gen@1.1.0"}
    return parse_table(record)


def an_override(**changes: Any) -> dict[str, Any]:
    return {"kind": "freeze", "target": "gen@1.0.0", "expires_in_s": 60.0, "reason": "x"} | changes


def a_queue_limit(**changes: Any) -> dict[str, Any]:
    target = "route:chat/max_queued_requests"
    return an_override(kind="limit", value=20.0, target=target) | changes


@pytest.mark.parametrize(
    "target",
    [
        "route:chat/max_queued_requests",
        "route:chat/max_queued_tokens",
        "route:team/embed/max_queued_requests",
    ],
)
def test_what_may_wait_for_a_route_is_changed_and_shown_until_it_expires(
    table: Table, command: Make, target: str
) -> None:
    asked = command("add_override", **a_queue_limit(target=target))
    state, outcome = execute(State(), asked, table, NOW)
    assert outcome["expires_at"] == NOW + 60
    (shown,) = overrides(state, NOW + 10)
    assert (shown["kind"], shown["target"], shown["value"]) == ("limit", target, 20.0)
    assert (shown["author"], shown["expires_in_s"]) == ("ops-1", 50.0)
    assert overrides(state, NOW + 60) == []
    assert published(state, NOW).overrides[0].of_route is not None


def test_before_the_table_a_routes_name_cannot_be_checked_but_its_field_is(command: Make) -> None:
    execute(State(), command("add_override", **a_queue_limit()), None, NOW)
    wrong = command("add_override", **a_queue_limit(target="route:chat/max_waiting"))
    with pytest.raises(InvalidRequest, match="max_queued_requests, max_queued_tokens"):
        execute(State(), wrong, None, NOW)


def test_a_weight_is_set_under_its_authors_name(table: Table, command: Make) -> None:
    asked = command("set_weight", rollout="r-1", percent=25, reason="looks fine")
    state, outcome = execute(State(), asked, table, NOW)
    assert outcome == {"rollout": "r-1", "percent": 25, "finished": False, "revision": 1}
    assert state.weights["r-1"].author == "ops-1"


def test_a_request_that_comes_twice_acts_once(table: Table, command: Make) -> None:
    asked = command("add_override", "same", **an_override())
    state, outcome = execute(State(), asked, table, NOW)
    again, same = execute(state, asked, table, NOW + 30)
    assert again is state
    assert same == outcome


def test_it_acts_once_even_when_it_could_not_be_done_now(table: Table, command: Make) -> None:
    state, _ = execute(State(), command("add_override", **an_override()), table, NOW)
    remove = command("remove_override", "same", id=state.overrides[0].id)
    state, outcome = execute(state, remove, table, NOW)
    assert execute(state, remove, table, NOW) == (state, outcome)


def test_one_request_id_is_not_two_requests(table: Table, command: Make) -> None:
    state, _ = execute(State(), command("revoke", "same", key="beta-1"), table, NOW)
    with pytest.raises(InvalidRequest) as caught:
        execute(state, command("revoke", "same", key="alpha-1"), table, NOW)
    assert caught.value.reason == "idempotency_key_reused"


def test_only_so_many_requests_are_remembered(table: Table, command: Make) -> None:
    state = State()
    for percent in range(REMEMBERED + 10):
        asked = command("set_weight", rollout="r-1", percent=percent % 100, reason="x")
        state, _ = execute(state, asked, table, NOW)
    assert len(state.done) == REMEMBERED
    assert state.done[-1].outcome["revision"] == REMEMBERED + 10


@pytest.mark.parametrize(
    ("verb", "args", "param"),
    [
        ("set_weight", {"rollout": "r-1", "percent": "50", "reason": "x"}, "percent"),
        ("set_weight", {"rollout": "r-1", "percent": 101, "reason": "x"}, "percent"),
        ("set_weight", {"rollout": "r-1", "percent": 1}, "reason"),
        ("set_weight", {"rollout": "r-1", "percent": 1, "reason": "x", "weight": 1}, "weight"),
        ("set_weight", {"rollout": "r/1", "percent": 1, "reason": "x"}, "rollout"),
        ("add_override", an_override(kind="mute"), "kind"),
        ("add_override", an_override(expires_in_s=0), "expires_in_s"),
        ("add_override", an_override(expires_in_s=8 * 86400), "expires_in_s"),
        ("add_override", an_override(value=1.0), "value"),
        ("add_override", an_override(kind="floor"), "value"),
        ("add_override", an_override(kind="floor", value=1.5), "value"),
        ("add_override", an_override(kind="floor", value=-1.0), "value"),
        ("add_override", an_override(target="gen"), "target"),
        ("add_override", an_override(kind="drain", target="replica:"), "target"),
        ("add_override", an_override(kind="freeze", target="replica:r1"), "target"),
        ("add_override", an_override(kind="limit", value=1.0, target="alpha"), "target"),
        ("add_override", an_override(kind="limit", value=1.0, target="alpha/tokens"), "target"),
        ("add_override", a_queue_limit(value=None), "value"),
        ("add_override", a_queue_limit(value=0.0), "value"),
        ("add_override", a_queue_limit(value=1.5), "value"),
        ("add_override", a_queue_limit(target="route:chat"), "target"),
        ("add_override", a_queue_limit(target="route:chat/"), "target"),
        ("add_override", a_queue_limit(target="route:/max_queued_requests"), "target"),
        ("add_override", a_queue_limit(target="route:chat/max_output_tokens"), "target"),
        ("add_override", a_queue_limit(target="route:chat/requests_per_min"), "target"),
        ("add_override", a_queue_limit(target="alpha/max_queued_requests"), "target"),
    ],
)
def test_wrong_arguments_are_named(
    table: Table, command: Make, verb: str, args: dict[str, Any], param: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        execute(State(), command(verb, **args), table, NOW)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("verb", "args", "reason"),
    [
        ("set_weight", {"rollout": "r-2", "percent": 1, "reason": "x"}, "no_rollout"),
        ("revoke", {"key": "gamma-1"}, "no_key"),
        (
            "add_override",
            an_override(kind="limit", value=1.0, target="gamma/input_tokens_per_min"),
            "no_tenant",
        ),
        (
            "add_override",
            an_override(kind="limit", value=1.0, target="route:chart/max_queued_requests"),
            "no_route",
        ),
        ("remove_override", {"id": "o-1"}, "no_override"),
        ("dance", {}, "no_verb"),
    ],
)
def test_unknown_names_are_not_found(
    table: Table, command: Make, verb: str, args: dict[str, Any], reason: str
) -> None:
    with pytest.raises(NotFound) as caught:
        execute(State(), command(verb, **args), table, NOW)
    assert caught.value.reason == reason


def test_a_rollout_that_left_the_table_can_still_be_turned_down(
    table: Table, command: Make
) -> None:
    begin = command("set_weight", rollout="r-1", percent=50, reason="x")
    state, _ = execute(State(), begin, table, NOW)
    back = command("set_weight", rollout="r-1", percent=0, reason="x", finish=True)
    state, _ = execute(state, back, parse_table(table_record()), NOW)
    assert (state.weights["r-1"].percent, state.weights["r-1"].finished) == (0, True)


def test_a_refused_command_is_not_remembered(table: Table, command: Make) -> None:
    state = State()
    with pytest.raises(RequestError):
        execute(state, command("revoke", "same", key="nobody"), table, NOW)
    state, outcome = execute(state, command("revoke", "same", key="beta-1"), table, NOW)
    assert outcome["revoked"] is True
