"""Control's rollouts: evidence in, moves out, and what survives its store, its board and itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from modelyard.contract.errors import InvalidRequest, NotFound, Overloaded
from modelyard.control.in_force import InForce
from modelyard.control.journal import Journal
from modelyard.control.keeper import HEAD_START_S
from modelyard.control.report import ControlReport
from modelyard.control.service import ControlService
from modelyard.control.state import decode
from modelyard.control.verbs import Command
from modelyard.rollout.outcome import OutcomeBatch
from modelyard.rollout.phases import RolloutPhase
from modelyard.testing.control_world import ControlWorld, MemoryStore, table_with_a_rollout
from modelyard.testing.scripted_evidence import CHATTY_TOKENS, FAILURES, ScriptedEvidence, outcome

Make = Callable[..., Command]
ID = "gen-1.1.0"
CANARY = "gen@1.1.0"
PLAN: dict[str, Any] = {
    "steps_percent": [10, 50, 100],
    "hold_s": 60,
    "min_samples": 5,
    "keep_for_s": 600,
}
FAILED = [outcome(ID, failed=True)] * FAILURES


@pytest.fixture
def world() -> ControlWorld:
    return ControlWorld(record=table_with_a_rollout(**PLAN))


class Ops:
    """Asks one control, as an operator would."""

    def __init__(self, world: ControlWorld, control: ControlService, command: Make) -> None:
        self.world, self.control, self.command = world, control, command

    async def on_rollout(self, verb: str, **args: Any) -> dict[str, Any]:
        asked = self.command(f"{verb}_rollout", rollout=ID, reason="because", **args)
        return await self.control.admin(asked)

    async def view(self) -> dict[str, Any]:
        return await self.control.admin(self.command("rollout", rollout=ID))

    async def decisions(self) -> list[dict[str, Any]]:
        answer = await self.control.admin(self.command("rollout_history", rollout=ID))
        decisions: list[dict[str, Any]] = answer["decisions"]
        return decisions

    async def whats(self) -> list[str]:
        return [one["what"] for one in await self.decisions()]

    async def second(self) -> None:
        self.world.now += 1
        await self.world.report(self.control)
        await self.control.tick(self.world.reading())

    async def step(self, requests: int = 5) -> None:
        """The whole hold of a step, with good requests."""
        await self.world.report(self.control, *[outcome(ID)] * requests)
        self.world.now += 60
        await self.second()


@pytest.fixture
async def ops(world: ControlWorld, command: Make) -> Ops:
    return Ops(world, await world.started(), command)


async def begun(ops: Ops) -> Ops:
    """At its first weight."""
    await ops.on_rollout("start")
    await ops.second()
    assert ops.world.word.weight(ID) == 10
    return ops


async def test_a_good_canary_is_promoted_step_by_step_with_its_evidence_written_down(
    ops: Ops,
) -> None:
    assert (await ops.view())["phase"] == "Pending"
    await begun(ops)
    weights = [10.0]
    for _ in range(3):
        await ops.step()
        weights.append(ops.world.word.weight(ID) or 0.0)
    assert weights == [10, 50, 100, 100]
    assert ops.world.word.finished == {ID}
    assert await ops.whats() == ["started", "step", "step", "step", "promoted"]
    decisions = await ops.decisions()
    assert [one["number"] for one in decisions] == [1, 2, 3, 4, 5]
    assert decisions[2]["verdicts"][0]["gate"] == "errors"
    await ops.step()
    assert len(await ops.decisions()) == 5


async def test_a_step_counts_only_the_requests_of_its_own_weight(ops: Ops) -> None:
    await begun(ops)
    await ops.step(requests=500)
    assert ops.world.word.weight(ID) == 50
    ops.world.now += 60
    await ops.second()
    view = await ops.view()
    assert (view["percent"], view["samples"]) == (50, 0)
    assert "0 of 5" in view["waits_for"]


async def test_evidence_of_failure_rolls_back_at_once_without_waiting_for_the_second(
    ops: Ops,
) -> None:
    await begun(ops)
    await ops.world.report(ops.control, *FAILED)
    await settled()
    assert ended(ops.world)
    (last,) = [one for one in await ops.decisions() if one["what"] == "rolled_back"]
    assert "3 failed" in last["why"]
    assert last["verdicts"][-1]["evidence"] is None  # JSON has no infinity
    reply = await ops.world.report(ops.control)
    assert reply.word is not None
    assert reply.word.weight(ID) == 0


async def test_a_batch_is_taken_once_and_its_number_is_acknowledged(ops: Ops) -> None:
    await begun(ops)
    one = OutcomeBatch(1, (outcome(ID),))
    two = OutcomeBatch(2, (outcome(ID),))
    for batches in ((one,), (one, two), (two, one), ()):
        reply = await ops.control.exchange(ControlReport("i-1", outcomes=batches))
    assert reply.outcomes_taken == 0  # not saved yet: a control that died now would lose them
    assert (await ops.view())["samples"] == 2
    await ops.control.exchange(ControlReport("i-2", outcomes=(one,)))
    assert (await ops.view())["samples"] == 3
    for _ in range(5):
        await ops.second()
    for ingress, number in (("i-1", 2), ("i-2", 1), ("i-3", 0)):
        reply = await ops.world.report(ops.control, ingress=ingress)
        assert reply.outcomes_taken == number


async def test_evidence_that_the_store_does_not_take_is_not_acknowledged(ops: Ops) -> None:
    await begun(ops)
    ops.world.store.failing = True
    await ops.world.report(ops.control, outcome(ID))
    for _ in range(10):
        await ops.second()
    assert (await ops.world.report(ops.control)).outcomes_taken == 0


async def test_a_control_without_a_table_and_one_that_was_succeeded_acknowledge_nothing(
    world: ControlWorld, ops: Ops, command: Make
) -> None:
    await begun(ops)
    wall = lambda: world.now  # noqa: E731
    later = ControlService(
        Journal(world.store, "mark-later"), world.publish, wall, wall, ScriptedEvidence
    )
    await later.start(world.board)
    assert (await world.report(later, outcome(ID))).outcomes_taken == 0
    later.adopt(world.record)
    await later.tick(world.reading())
    again = OutcomeBatch(world.batches, (outcome(ID),))
    await later.exchange(ControlReport("i-1", outcomes=(again,)))
    assert (await Ops(world, later, command).view())["samples"] == 1
    for _ in range(6):
        await ops.second()  # the older control: it learns that it was succeeded
    assert (await world.report(ops.control, outcome(ID))).outcomes_taken == 0


async def test_without_reports_it_does_not_go_on(ops: Ops) -> None:
    await begun(ops)
    await ops.world.report(ops.control, *[outcome(ID)] * 5)
    ops.world.now += 61
    await ops.control.tick(ops.world.reading())
    assert ops.world.word.weight(ID) == 10
    assert "no ingress" in (await ops.view())["waits_for"]


async def test_a_weight_waits_for_replicas_and_asks_for_them(ops: Ops) -> None:
    ops.world.canaries = 0
    await ops.on_rollout("start")
    await ops.second()
    view = await ops.view()
    assert (view["phase"], view["percent"]) == ("Step", 0)
    assert "a ready replica" in view["waits_for"]
    (floor,) = ops.world.word.overrides
    assert (floor.kind, floor.target, floor.value) == ("floor", CANARY, 1)
    assert floor.author == f"rollout:{ID}"
    ops.world.canaries = 1
    await ops.second()
    assert ops.world.word.weight(ID) == 10


async def test_a_rolled_back_canary_keeps_a_replica_for_a_while_and_then_none(ops: Ops) -> None:
    await begun(ops)
    await ops.on_rollout("rollback")
    (floor,) = ops.world.word.overrides
    assert (floor.kind, floor.target, floor.value, floor.left_s) == ("floor", CANARY, 1, 600)
    assert (await ops.view())["kept_for_s"] == 600
    ops.world.now += 600
    await ops.second()
    (ceiling,) = ops.world.word.overrides
    assert (ceiling.kind, ceiling.target, ceiling.value) == ("ceiling", CANARY, 0)


async def test_a_rollback_before_serve_has_given_the_table_keeps_the_replica_as_planned(
    world: ControlWorld, ops: Ops, command: Make
) -> None:
    await begun(ops)
    wall = lambda: world.now  # noqa: E731
    later = ControlService(
        Journal(world.store, "mark-later"), world.publish, wall, wall, ScriptedEvidence
    )
    await later.start(world.board)
    await Ops(world, later, command).on_rollout("rollback")
    assert (await Ops(world, later, command).view())["kept_for_s"] == 600
    assert [(one.target, one.left_s) for one in world.word.overrides] == [(CANARY, 600)]


async def test_all_requests_go_by_hand_only_where_the_canary_has_room(ops: Ops) -> None:
    await begun(ops)
    ops.world.canaries = 0
    await ops.second()
    for finish in (False, True):
        everything = {"rollout": ID, "percent": 100.0, "reason": "x", "finish": finish}
        with pytest.raises(InvalidRequest, match="no ready replica"):
            await ops.control.admin(ops.command("set_weight", **everything))
    with pytest.raises(InvalidRequest, match="no ready replica"):
        await ops.on_rollout("promote")
    assert ops.world.word.weight(ID) == 10


async def test_stable_is_kept_able_to_take_everything_back(ops: Ops) -> None:
    await begun(ops)
    floors = {one.target: one.value for one in ops.world.word.overrides}
    assert floors == {CANARY: 1, "gen@1.0.0": 1}
    await ops.on_rollout("promote")
    (floor,) = ops.world.word.overrides
    assert (floor.target, floor.value, floor.left_s) == ("gen@1.0.0", 1, 600)
    ops.world.now += 600
    await ops.second()
    assert ops.world.word.overrides == ()


async def test_a_clock_that_is_set_back_neither_hides_silence_nor_shows_less_than_nothing(
    world: ControlWorld,
) -> None:
    ticks = [0.0]
    journal = Journal(world.store, "mark-clock")
    control = ControlService(
        journal, world.publish, lambda: world.now, lambda: ticks[0], ScriptedEvidence
    )
    control.adopt(world.record)
    await control.start(None)
    asked = {"rollout": ID, "reason": "x"}
    await control.admin(Command("start_rollout", asked, "ops-1", "1"))
    await world.report(control)
    await control.tick(world.reading())
    assert world.word.weight(ID) == 10
    world.now -= 86_400
    ticks[0] += 20
    view = await control.admin(Command("rollout", {"rollout": ID}, "ops-1", "2"))
    assert (view["since_s"], view["left_s"]) == (0, 40)
    assert "no ingress" in view["waits_for"]
    ticks[0] += 40
    await world.report(control, *[outcome(ID)] * 5)
    await control.tick(world.reading())
    assert world.word.weight(ID) == 50


async def test_replicas_that_another_route_needs_are_left_alone(ops: Ops) -> None:
    await begun(ops)
    await ops.on_rollout("rollback")
    ops.world.record["routes"]["other"] = {"stable": CANARY}
    ops.control.adopt(ops.world.record)
    ops.world.now += 600
    await ops.second()
    assert ops.world.word.overrides == ()


async def test_a_gate_that_may_not_act_waits_for_a_human_who_decides_once(ops: Ops) -> None:
    await begun(ops)
    await ops.world.report(ops.control, outcome(ID, output_tokens=CHATTY_TOKENS))
    await ops.second()
    view = await ops.view()
    assert view["phase"] == "AwaitingApproval"
    assert "twice as chatty" in view["waits_for"]
    (gate,) = [one for one in view["gates"] if one["gate"] == "tokens"]
    assert (gate["state"], gate["on_fail"], gate["accepted"]) == ("failing", "hold", False)
    await ops.step()
    assert ops.world.word.weight(ID) == 10
    await ops.on_rollout("approve")
    await ops.step()
    assert ops.world.word.weight(ID) == 50
    await ops.step()  # what still fails at the next weight asks again
    assert ((await ops.view())["phase"], ops.world.word.weight(ID)) == ("AwaitingApproval", 50)
    await ops.on_rollout("approve")
    await ops.step()
    assert ops.world.word.weight(ID) == 100


async def test_shadow_copies_are_asked_for_until_enough_pairs_are_compared(
    world: ControlWorld, command: Make
) -> None:
    world.record = table_with_a_rollout(**PLAN, shadow_percent=20, shadow_min_pairs=3)
    ops = Ops(world, await world.started(), command)
    await ops.on_rollout("start")
    assert (world.word.shadows, world.word.weight(ID)) == (((ID, 20.0),), 0)
    await world.report(ops.control, *[outcome(ID, "shadow")] * 3)
    await ops.second()
    assert (world.word.shadows, world.word.weight(ID)) == ((), 10)


@pytest.mark.parametrize("target", ["*", f"rollout:{ID}"])
async def test_a_freeze_stops_every_move_and_is_shown_and_a_human_may_still_act(
    ops: Ops, target: str
) -> None:
    await begun(ops)
    freeze = {"kind": "freeze", "target": target, "expires_in_s": 3600.0, "reason": "a release"}
    await ops.control.admin(ops.command("add_override", **freeze))
    await ops.world.report(ops.control, *FAILED)
    await ops.step()
    assert ops.world.word.weight(ID) == 10
    view = await ops.view()
    assert (view["frozen"], view["phase"]) == ("ops-1", "Holding")
    assert "freeze by ops-1" in view["waits_for"]
    await ops.on_rollout("rollback")
    assert ops.world.word.weight(ID) == 0


async def test_a_freeze_of_an_unknown_rollout_is_refused(ops: Ops) -> None:
    freeze = {"kind": "freeze", "target": "rollout:r-9", "expires_in_s": 60.0, "reason": "x"}
    with pytest.raises(NotFound, match="r-9"):
        await ops.control.admin(ops.command("add_override", **freeze))


async def test_a_weight_by_hand_pauses_it_and_it_resumes_from_there(ops: Ops) -> None:
    await begun(ops)
    await ops.control.admin(ops.command("set_weight", rollout=ID, percent=30.0, reason="a look"))
    await ops.step()
    view = await ops.view()
    assert (view["phase"], view["percent"], view["author"]) == ("Paused", 30, "ops-1")
    await ops.on_rollout("resume")
    await ops.step()
    assert ops.world.word.weight(ID) == 50
    with pytest.raises(InvalidRequest, match="0 or at 100"):
        await ops.control.admin(
            ops.command("set_weight", rollout=ID, percent=30.0, reason="x", finish=True)
        )


async def test_a_verb_that_comes_twice_acts_once(ops: Ops) -> None:
    asked = ops.command("start_rollout", "same", rollout=ID, reason="x")
    first = await ops.control.admin(asked)
    assert await ops.control.admin(asked) == first
    await ops.second()
    twice = [await ops.on_rollout("rollback") for _ in range(2)]
    assert [one["phase"] for one in twice] == ["RolledBack"] * 2
    assert (await ops.whats()).count("rolled_back") == 1


async def test_an_unchanged_table_changes_nothing_and_a_new_plan_only_the_plan(ops: Ops) -> None:
    await begun(ops)
    before = ops.world.word
    ops.control.adopt(table_with_a_rollout(**PLAN))
    await ops.second()
    assert ops.world.word.order == before.order
    await ops.world.report(ops.control, *[outcome(ID)] * 4)
    ops.control.adopt(table_with_a_rollout(**(PLAN | {"steps_percent": [10, 20, 100]})))
    await ops.second()
    view = await ops.view()
    assert (view["steps_percent"], view["percent"], view["samples"]) == ([10, 20, 100], 10, 4)
    assert ops.world.word.order == before.order
    await ops.step()
    assert ops.world.word.weight(ID) == 20


async def test_a_rollout_that_leaves_the_table_is_aborted_and_its_id_never_returns(
    ops: Ops,
) -> None:
    await begun(ops)
    without = table_with_a_rollout()
    del without["routes"]["chat"]["rollout"]
    ops.control.adopt(without)
    await ops.second()
    assert ended(ops.world)
    ops.control.adopt(ops.world.record)
    await ops.step()
    assert ops.world.word.weight(ID) == 0
    with pytest.raises(InvalidRequest, match="another id"):
        await ops.on_rollout("start")


async def test_a_control_that_starts_aborts_nothing_before_it_is_given_a_table(
    world: ControlWorld, ops: Ops
) -> None:
    """The table in its store may be older than the rollout."""
    await begun(ops)
    without = table_with_a_rollout()
    del without["routes"]["chat"]["rollout"]
    world.store.rows["table"] = b"1 mark-1\n" + json.dumps(without).encode(), 9_999
    journal = Journal(world.store, "mark-later")
    wall = lambda: world.now  # noqa: E731
    control = ControlService(journal, world.publish, wall, wall, ScriptedEvidence)
    await control.start(world.board)
    await control.tick(world.reading())
    assert world.word.weight(ID) == 10
    control.adopt(world.record)
    await control.tick(world.reading())
    assert world.word.weight(ID) == 10


async def test_other_versions_under_a_running_id_abort_it(ops: Ops) -> None:
    await begun(ops)
    other = table_with_a_rollout(**PLAN)
    other["routes"]["chat"]["canary"] = "gen@1.2.0"
    ops.control.adopt(other)
    await ops.second()
    assert (await ops.view())["phase"] == "Aborted"


async def test_a_store_that_fails_holds_a_step_back_and_not_a_rollback(ops: Ops) -> None:
    await begun(ops)
    ops.world.store.failing = True
    await ops.step()
    assert ops.world.word.weight(ID) == 10
    await ops.world.report(ops.control, *FAILED)
    await settled()
    assert ended(ops.world)
    with pytest.raises(Overloaded):
        await ops.control.admin(ops.command("revoke", key="beta-1"))
    assert ops.world.word.weight(ID) == 0
    ops.world.store.failing = False
    await ops.second()
    assert phase_in(ops.world.store) is RolloutPhase.ROLLED_BACK
    await ops.control.admin(ops.command("revoke", key="beta-1"))
    assert ops.world.word.weight(ID) == 0
    assert ops.world.word.revoked == {"beta-1"}


async def test_a_humans_rollback_is_in_force_without_the_store_too(ops: Ops) -> None:
    await begun(ops)
    ops.world.store.failing = True
    answer = await ops.on_rollout("rollback")
    assert (answer["phase"], answer["stored"], answer["published"]) == ("RolledBack", False, True)
    assert ops.world.word.weight(ID) == 0
    status = await ops.control.admin(ops.command("status"))
    assert status["unstored_rollbacks"] == [ID]
    again = await ops.on_rollout("rollback")
    assert again["revision"] == answer["revision"]


async def test_a_control_that_was_succeeded_says_so_and_rolls_nothing_back(
    world: ControlWorld, ops: Ops
) -> None:
    await begun(ops)
    await world.started()
    with pytest.raises(Overloaded, match="another control"):
        await ops.on_rollout("rollback")
    assert world.word.weight(ID) == 10


async def test_a_rollback_that_no_store_has_is_learned_from_the_board(
    world: ControlWorld, ops: Ops, command: Make
) -> None:
    await begun(ops)
    world.store.failing = True
    await world.report(ops.control, *FAILED)
    await settled()
    world.store.failing = False
    later = Ops(world, await world.started(), command)
    view = await later.view()
    assert (view["phase"], view["percent"], view["held"]) == ("RolledBack", 0, "")
    assert view["kept_for_s"] == 600
    assert await later.whats() == ["started", "step", "restored"]
    assert [one.author for one in world.word.overrides] == [f"rollout:{ID}"]


class HungStore(MemoryStore):
    """Answers no write until `answers` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.answers.set()

    async def write(self, key: str, data: bytes, version: str | None) -> str:
        await self.answers.wait()
        return await super().write(key, data, version)


async def test_a_store_that_hangs_does_not_delay_a_rollback(
    world: ControlWorld, command: Make
) -> None:
    store = world.store = HungStore()
    ops = await begun(Ops(world, await world.started(), command))
    store.answers.clear()
    saving = asyncio.create_task(ops.control.admin(command("revoke", key="beta-1")))
    await settled()
    await world.report(ops.control, *FAILED)
    await asyncio.sleep(2 * HEAD_START_S)
    assert world.word.weight(ID) == 0
    assert not saving.done()
    store.answers.set()
    await saving
    await ops.second()
    assert phase_in(store) is RolloutPhase.ROLLED_BACK
    assert world.word.weight(ID) == 0
    assert world.word.revoked == {"beta-1"}


async def test_evidence_of_what_is_over_or_gone_is_not_kept(world: ControlWorld, ops: Ops) -> None:
    await begun(ops)
    for _ in range(6):
        await ops.second()
    _, version = world.store.rows["evidence"]
    kept = b'1 mark-1\n{"rollouts": {"%s": {}, "gone": {}}, "taken": {}}' % ID.encode()
    world.store.rows["evidence"] = kept, version
    await ops.on_rollout("rollback")
    later = await world.started()
    assert json.loads(later.rollouts.shelf.encode())["rollouts"] == {}


async def test_a_later_control_goes_on_with_the_evidence(
    world: ControlWorld, ops: Ops, command: Make
) -> None:
    await begun(ops)
    await world.report(ops.control, *[outcome(ID)] * 4)
    for _ in range(6):
        await ops.second()
    later = Ops(world, await world.started(), command)
    view = await later.view()
    assert (view["phase"], view["samples"]) == ("Holding", 4)
    repeated = OutcomeBatch(world.batches, (outcome(ID),))
    reply = await later.control.exchange(ControlReport("i-1", outcomes=(repeated,)))
    assert (reply.outcomes_taken, (await later.view())["samples"]) == (world.batches, 4)


async def test_evidence_of_the_step_before_is_not_taken_for_this_ones(
    world: ControlWorld, ops: Ops, command: Make
) -> None:
    await begun(ops)
    await world.report(ops.control, *[outcome(ID)] * 4)
    for _ in range(6):
        await ops.second()
    older = world.store.rows["evidence"]
    await ops.step()
    world.store.rows["evidence"] = older  # it died between the commit and the next save
    later = Ops(world, await world.started(), command)
    assert ((await later.view())["percent"], (await later.view())["samples"]) == (50, 0)


async def test_evidence_that_cannot_be_read_begins_anew(
    world: ControlWorld, ops: Ops, command: Make
) -> None:
    await begun(ops)
    for _ in range(6):
        await ops.second()
    _, version = world.store.rows["evidence"]
    world.store.rows["evidence"] = b"1 mark-1\n{}", version
    later = Ops(world, await world.started(), command)
    await later.step()
    assert world.word.weight(ID) == 50


async def test_a_state_without_rollouts_is_read_and_its_weight_is_paused(
    world: ControlWorld, command: Make
) -> None:
    old = (
        b'1 mark-0\n{"schema":"modelyard/control/v1","epoch":1,"revision":4,"weights":{"%s":'
        b'{"percent":25,"finished":false,"author":"ops-1","reason":"x","at":999000.0}}}'
    ) % ID.encode()
    world.store.rows["state"] = old, 0
    ops = Ops(world, await world.started(), command)
    view = await ops.view()
    assert (view["phase"], view["percent"], view["author"]) == ("Paused", 25, "ops-1")
    await ops.on_rollout("resume")
    await ops.step()
    assert world.word.weight(ID) == 50


async def test_judgements_of_a_golden_set_become_evidence_of_a_rollout_that_runs(ops: Ops) -> None:
    one = {"unit": "p-1", "arm": "canary", "good": True, "pair": "p-1"}
    asked = {"rollout": ID, "judgements": [one, one | {"arm": "stable"}]}
    assert await ops.control.admin(ops.command("judge_rollout", **asked)) == {"taken": 0}
    await begun(ops)
    assert await ops.control.admin(ops.command("judge_rollout", **asked)) == {"taken": 2}
    evidence = ops.control.rollouts.shelf.by_rollout[ID].evidence
    assert isinstance(evidence, ScriptedEvidence)
    assert evidence.judged == 2
    with pytest.raises(NotFound):
        await ops.control.admin(ops.command("judge_rollout", **(asked | {"rollout": "r-9"})))


async def test_an_ingress_that_starts_without_control_does_not_revive_a_rolled_back_weight(
    ops: Ops,
) -> None:
    await begun(ops)
    running = InForce(lambda: ops.world.now)
    running.take(ops.world.word)
    await ops.on_rollout("rollback")
    await ops.control.close()
    starting = InForce(lambda: ops.world.now)
    starting.take(ops.world.board)
    assert (starting.steering.weights, starting.steering.finished) == ({ID: 0}, frozenset({ID}))
    # Nor does a board that began anew, once an ingress has told it what it missed.
    starting.take(None)
    assert starting.to_tell is not None
    running.take(starting.to_tell)
    assert (running.steering.weights, running.steering.finished) == ({ID: 0}, frozenset({ID}))


async def test_the_real_gates_roll_back_a_canary_that_fails_a_third_of_its_requests(
    world: ControlWorld, command: Make
) -> None:
    journal = Journal(world.store, "mark-real")
    wall = lambda: world.now  # noqa: E731
    control = ControlService(journal, world.publish, wall, wall)
    control.adopt(world.record)
    await control.start(None)
    ops = await begun(Ops(world, control, command))
    good = [outcome(ID, "stable")] * 90
    for _ in range(60):
        bad = [outcome(ID, failed=number < 3) for number in range(10)]
        await world.report(control, *good, *bad)
        await ops.second()
        if world.word.finished:
            break
    view = await ops.view()
    assert view["phase"] == "RolledBack"
    assert "errors" in view["reason"]
    # What it ended on is still shown, after the evidence has gone.
    await ops.second()
    view = await ops.view()
    shares = {one["arm"]: one["error_share"] for one in view["arms"]}
    assert shares == {"stable": 0.0, "canary": pytest.approx(0.3)}
    assert {one["gate"]: one["state"] for one in view["gates"]}["errors"] == "failing"


@dataclass(frozen=True)
class Expected:
    phase: str = "Holding"
    step: int = 0
    steps_percent: tuple[int, ...] = (10, 50, 100)
    percent: float = 10
    min_samples: int = 5
    left_s: float = 60
    shadow_percent: float = 0
    start: str = "manual"


async def test_a_view_has_what_a_human_decides_from(ops: Ops) -> None:
    await begun(ops)
    (view,) = (await ops.control.admin(ops.command("rollouts")))["rollouts"]
    assert view == await ops.view()
    names = Expected()
    for name in Expected.__dataclass_fields__:
        wanted = getattr(names, name)
        assert view[name] == (list(wanted) if isinstance(wanted, tuple) else wanted), name
    assert view["capacity"] == {"ready": 1, "slots": 24, "needed_slots": 0}
    assert [(one["arm"], one["requests"]) for one in view["arms"]] == [("canary", 0)]
    assert (view["evidence_age_s"], view["kept_for_s"]) == (None, None)


async def settled() -> None:
    """What was woken has run."""
    for _ in range(20):
        await asyncio.sleep(0)


def ended(world: ControlWorld) -> bool:
    """No request goes to the canary, and none ever will."""
    return world.word.weight(ID) == 0 and world.word.finished == {ID}


def phase_in(store: MemoryStore) -> RolloutPhase:
    return decode(store.rows["state"][0].partition(b"\n")[2]).rollouts[ID].phase
