"""Control over a store that crashes, a board that is lost, and a successor that starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelyard.contract.errors import Overloaded
from modelyard.control.journal import Journal
from modelyard.control.published import Override, Published
from modelyard.control.reading import Decided
from modelyard.control.report import ControlReport
from modelyard.control.service import ControlService
from modelyard.control.state import OLDER_THAN_THE_BOARD
from modelyard.control.store import StoreFailed
from modelyard.control.usage import Amounts, UsageKey
from modelyard.control.verbs import Command
from modelyard.lifecycle.phases import Phase
from modelyard.testing.control_world import ControlWorld
from modelyard.testing.in_memory import post as replica_post

Make = Callable[..., Command]
ROLLOUT = "gen-1.1.0"
KEY = UsageKey("1970-01-12", "alpha", "chat", "gen@1.0.0")


def weight(command: Make, percent: float, request: str | None = None) -> Command:
    return command("set_weight", request, rollout=ROLLOUT, percent=percent, reason="x")


def of_humans(word: Published) -> list[Override]:
    """Without what control wishes for a canary that has a weight."""
    return [one for one in word.overrides if not one.author.startswith("rollout:")]


async def ask(control: Any, command: Make, verb: str, **args: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await control.admin(command(verb, **args))
    return answer


async def test_a_change_is_on_the_board_at_once(world: ControlWorld, command: Make) -> None:
    control = await world.started()
    await control.admin(weight(command, 25))
    assert world.word.weight(ROLLOUT) == 25
    await control.admin(command("revoke", key="beta-1"))
    assert world.word.revoked == {"beta-1"}


async def test_a_restarted_control_has_everything_and_a_higher_epoch(
    world: ControlWorld, command: Make
) -> None:
    first = await world.started()
    await first.admin(weight(command, 25))
    await first.admin(command("revoke", key="beta-1"))
    await first.admin(
        command("add_override", kind="freeze", target="gen@1", expires_in_s=60, reason="x")
    )
    before = world.word
    world.now += 10
    second = await world.started()
    after = world.word
    assert after.order > before.order
    assert (after.weights, after.revoked) == (before.weights, before.revoked)
    assert [one.left_s for one in of_humans(after)] == [50.0]
    assert (await ask(second, command, "status"))["held"] == ""
    world.now += 50
    await second.tick(world.reading())
    assert of_humans(world.word) == []
    assert await ask(second, command, "overrides") == {"overrides": []}


async def test_the_first_control_stops_when_the_second_starts(
    world: ControlWorld, command: Make
) -> None:
    first, second = await world.started(), await world.started()
    with pytest.raises(Overloaded) as caught:
        await first.admin(weight(command, 25))
    assert caught.value.reason == "control_down"
    assert first.fenced
    await second.admin(weight(command, 50))
    await first.tick(world.reading())
    assert world.word.weight(ROLLOUT) == 50


async def test_a_partitioned_control_that_only_ticks_stops_too(world: ControlWorld) -> None:
    first = await world.started()
    world.board_up = False
    second = await world.started()
    world.board_up = True
    await second.tick(world.reading())
    await first.tick(world.reading())
    assert first.fenced
    assert not second.fenced


async def test_a_lost_store_comes_back_from_the_board_and_says_so(
    world: ControlWorld, command: Make
) -> None:
    first = await world.started()
    await first.admin(weight(command, 25))
    await first.admin(command("revoke", key="beta-1"))
    world.store.rows.clear()
    second = await world.started()
    status = await ask(second, command, "status")
    assert status["held"] == OLDER_THAN_THE_BOARD
    assert [(one["id"], one["percent"]) for one in status["rollouts"]] == [(ROLLOUT, 25)]
    assert (world.word.weight(ROLLOUT), world.word.revoked) == (25, frozenset({"beta-1"}))
    assert world.word.held
    await second.admin(command("release"))
    assert world.word.held == ""


async def test_a_board_that_comes_back_later_than_the_store_is_believed(
    world: ControlWorld, command: Make
) -> None:
    """Control starts on an older copy while the board cannot be reached."""
    first = await world.started()
    older = dict(world.store.rows)
    await first.admin(weight(command, 25))
    world.store.rows = older
    world.board_up = False
    second = await world.started()
    await second.admin(weight(command, 5))
    world.board_up = True
    # The copy's own changes have a later epoch than the word of the lost one: they count.
    await second.tick(world.reading())
    assert world.word.weight(ROLLOUT) == 5


async def test_an_empty_store_without_a_board_takes_the_boards_word_when_it_is_there(
    world: ControlWorld, command: Make
) -> None:
    for _ in range(3):
        first = await world.started()
    await first.admin(weight(command, 25))
    world.store.rows.clear()
    world.board_up = False
    second = await world.started()
    world.board_up = True
    await second.tick(world.reading())
    await second.tick(world.reading())
    assert (world.word.weight(ROLLOUT), world.word.held) == (25, OLDER_THAN_THE_BOARD)
    assert world.word.epoch == 4
    assert not second.fenced


async def test_a_lost_board_is_filled_within_a_tick(world: ControlWorld, command: Make) -> None:
    control = await world.started()
    await control.admin(weight(command, 25))
    world.board = None
    await control.tick(world.reading())
    assert world.word.weight(ROLLOUT) == 25


async def test_without_a_store_nothing_changes_and_the_word_goes_on(
    world: ControlWorld, command: Make
) -> None:
    control = await world.started()
    await control.admin(weight(command, 25))
    world.store.failing = True
    with pytest.raises(Overloaded) as caught:
        await control.admin(weight(command, 50))
    assert caught.value.reason == "control_store"
    assert world.word.weight(ROLLOUT) == 25
    world.board = None
    await control.tick(world.reading())
    status = await ask(control, command, "status")
    assert "the store is gone" in status["store_error"]
    world.store.failing = False
    await control.admin(weight(command, 50))
    assert (await ask(control, command, "status"))["store_error"] == ""


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    percents=st.lists(st.integers(0, 100), min_size=1, max_size=6),
    crash_after=st.integers(0, 8),
    board_lost=st.booleans(),
)
async def test_a_crash_after_any_write_loses_nothing_that_was_acknowledged(
    percents: list[int], crash_after: int, board_lost: bool
) -> None:
    """The caller sends again what was not acknowledged, with the same request id."""
    world = ControlWorld()
    control = await world.started()
    world.store.crash_after = crash_after
    acknowledged: int | None = None
    for number, percent in enumerate(percents):
        asked = Command(
            "set_weight",
            {"rollout": ROLLOUT, "percent": percent, "reason": "x"},
            "ops-1",
            f"r-{number}",
        )
        for _ in range(2):
            try:
                await control.admin(asked)
                acknowledged = percent
                break
            except Overloaded:
                world.store.crash_after = None
                if board_lost:
                    world.board = None
                control = ControlService(
                    Journal(world.store), world.publish, lambda: world.now, lambda: world.now
                )
                await control.start(world.board)
                if acknowledged is not None:
                    await control.tick(world.reading())
        assert acknowledged == percent
    await control.tick(world.reading())
    assert world.word.weight(ROLLOUT) == acknowledged
    assert world.word.held == ""


async def test_a_crash_while_it_starts_leaves_a_store_for_the_next(world: ControlWorld) -> None:
    first = await world.started()
    await first.tick(world.reading())
    for writes in (1, 2):
        world.store.crash_after = writes
        with pytest.raises(StoreFailed):
            await world.started()
        world.store.crash_after = None
        last = await world.started()
        assert not last.fenced


async def test_the_last_good_table_outlives_control_and_a_bad_one(
    world: ControlWorld, command: Make
) -> None:
    first = await world.started()
    digest = (await ask(first, command, "status"))["table_digest"]
    first.adopt({"schema": "modelyard/table/v1", "routes": {}})
    status = await ask(first, command, "status")
    assert (status["table_valid"], status["table_digest"]) == (False, digest)
    assert "routes" in status["table_error"]

    second = ControlService(
        Journal(world.store), world.publish, lambda: world.now, lambda: world.now
    )
    second.adopt({"schema": "nonsense"})
    await second.start(world.board)
    status = await ask(second, command, "status")
    assert (status["table_valid"], status["table_digest"]) == (False, digest)
    assert second.tables.record == first.tables.record


async def test_keys_are_listed_without_hashes_and_revoked_ones_with_their_author(
    world: ControlWorld, command: Make
) -> None:
    control = await world.started()
    await control.admin(command("revoke", key="beta-1", reason="leaked"))
    keys = {one["id"]: one for one in (await ask(control, command, "keys"))["keys"]}
    assert keys["alpha-1"] == {
        "id": "alpha-1",
        "tenant": "alpha",
        "roles": ["invoke"],
        "expires": None,
        "revoked": False,
    }
    assert (keys["beta-1"]["revoked_by"], keys["beta-1"]["reason"]) == ("ops-1", "leaked")
    record = dict(control.tables.record)
    record["keys"] = [key for key in record["keys"] if key["id"] != "beta-1"]
    control.adopt(record)
    assert {"id": "beta-1", "revoked": True}.items() <= (await ask(control, command, "keys"))[
        "keys"
    ][-1].items()


async def test_usage_is_kept_over_a_restart_and_never_counted_twice(
    world: ControlWorld, command: Make
) -> None:
    first = await world.started()
    await first.exchange(ControlReport("i-1", None, ((KEY, Amounts(2, 0, 10, 4)),)))
    world.now += 10
    await first.tick(world.reading())
    second = await world.started()
    for _ in range(2):
        await second.exchange(ControlReport("i-1", None, ((KEY, Amounts(3, 1, 15, 6)),)))
    await second.exchange(ControlReport("i-2", None, ((KEY, Amounts(1, 0, 1, 1)),)))
    [row] = (await ask(second, command, "usage"))["usage"]
    assert (row["requests"], row["refused"], row["input_tokens"]) == (4, 1, 16)
    assert await ask(second, command, "usage", tenant="beta") == {"usage": []}


async def test_splits_that_another_release_kept_do_not_keep_control_down(
    world: ControlWorld, command: Make
) -> None:
    first = await world.started()
    await first.admin(weight(command, 25))
    world.store.rows["quota"] = b"1 mark-1\n{}", 99
    second = await world.started()
    assert not second.fenced
    assert world.word.weight(ROLLOUT) == 25


async def test_replicas_are_listed_with_what_scaling_decided_and_who_was_told_to_leave(
    world: ControlWorld, command: Make
) -> None:
    control = await world.started()
    order = {"kind": "drain", "target": "replica:r1", "expires_in_s": 60.0, "reason": "a slow disk"}
    await control.admin(command("add_override", **order))
    reading = world.reading()
    assert reading is not None
    posts = (
        replica_post("gen@1.0.0", replica="r2"),
        replica_post("gen@1.0.0", replica="r1"),
        replica_post("gen@1.0.0", replica="r3", phase=Phase.LOADING, age_s=6.0),
        replica_post("gen@1.0.0", replica="gone", age_s=9.0),
    )
    decided = Decided("gen@1.0.0", 2, "idle, at least min_replicas 2")
    await control.tick(replace(reading, posts=posts, decisions=(decided,)))
    answer = await ask(control, command, "replicas")
    rows = [(one["replica"], one["ready"], one["drained"]) for one in answer["replicas"]]
    assert rows == [
        ("r1", True, "drained by ops-1: a slow disk"),
        ("r2", True, None),
        ("r3", False, None),
    ]
    assert answer["scaling"] == {
        "gen@1.0.0": {"replicas": 2, "why": "idle, at least min_replicas 2"}
    }


async def test_without_a_board_nobody_knows_the_replicas(
    world: ControlWorld, command: Make
) -> None:
    control = await world.started()
    world.board_up = False
    await control.tick(world.reading())
    with pytest.raises(Overloaded, match="nobody knows the replicas"):
        await ask(control, command, "replicas")
