"""The replicas that control asks for: of both arms, at the height of a minute."""

from __future__ import annotations

from typing import Any

import pytest

from modelyard.config.table import Table, parse_table
from modelyard.contract.operations import Kind
from modelyard.control.demand import Demands
from modelyard.control.ingress_post import IngressPost
from modelyard.control.reading import IngressEntry, Reading
from modelyard.control.rollout_states import keep, planned_in
from modelyard.control.rollout_wishes import wishes
from modelyard.control.state import State
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.recent_peak import WINDOW_S
from modelyard.rollout.record import RolloutRecord
from modelyard.testing.control_world import table_with_a_rollout
from modelyard.testing.in_memory import post

P = RolloutPhase
ID, STABLE, CANARY = "gen-1.1.0", "gen@1.0.0", "gen@1.1.0"
NOW, KEEP_S = 1_000_000.0, 600.0


def a_table(*others: str) -> Table:
    """others: ids of rollouts of further routes between the same versions."""
    record = table_with_a_rollout(keep_for_s=KEEP_S)
    for other in others:
        route = {"stable": STABLE, "canary": CANARY, "rollout": {"id": other}}
        record["routes"][other] = route
    return parse_table(record)


def a_record(phase: RolloutPhase, percent: float, **changes: Any) -> RolloutRecord:
    names = {"id": ID, "alias": "chat", "stable": STABLE, "canary": CANARY, "since": NOW}
    return RolloutRecord(**(names | changes), phase=phase, percent=percent)


def a_reading(in_flight: dict[str, int], *, stables: int = 1, canaries: int = 1) -> Reading:
    posts = tuple(
        post(version, Kind.GENERATOR, slots=4, replica=f"{version}-{number}")
        for version, count in ((STABLE, stables), (CANARY, canaries))
        for number in range(count)
    )
    ingress = IngressPost("i-1", "d", True, in_flight=tuple(in_flight.items()))
    return Reading(posts, (IngressEntry(ingress, 0.1),), (), None, None, 100.0)


def asked(
    state: State, reading: Reading | None, now: float = NOW, table: Table | None = None
) -> dict[tuple[str, str], float | None]:
    """(kind, version): replicas."""
    known = table or a_table()
    demands = Demands()
    demands.take(reading, planned_in(known).values(), 0.0)
    return {(one.kind, one.target): one.value for one in wishes(state, known, demands, now)}


@pytest.mark.parametrize("phase", [P.HOLDING, P.STEP, P.PAUSED, P.AWAITING_APPROVAL])
def test_stable_keeps_the_replicas_to_take_everything_back(phase: RolloutPhase) -> None:
    state = keep(State(), a_record(phase, 50))
    reading = a_reading({STABLE: 3, CANARY: 8, "other@1": 99})
    assert asked(state, reading)["floor", STABLE] == 3  # 11 requests, 4 slots each
    assert asked(state, a_reading({}, stables=0))["floor", STABLE] == 1
    assert asked(state, None)["floor", STABLE] == 1


def test_and_does_so_for_a_while_after_the_promotion() -> None:
    state = keep(State(), a_record(P.PROMOTED, 100))
    reading = a_reading({CANARY: 8})
    assert asked(state, reading, NOW + KEEP_S - 1)["floor", STABLE] == 2
    assert asked(state, reading, NOW + KEEP_S) == {}


@pytest.mark.parametrize("phase", [P.PENDING, P.SHADOWING, P.ROLLED_BACK, P.ABORTED])
def test_without_weight_nothing_can_come_back(phase: RolloutPhase) -> None:
    state = keep(State(), a_record(phase, 0, kept_until=NOW + 9))
    assert ("floor", STABLE) not in asked(state, a_reading({CANARY: 8}))


def test_two_rolled_back_rollouts_that_share_a_canary_let_it_go() -> None:
    table = a_table("r-2")
    state = keep(State(), a_record(P.ROLLED_BACK, 0, kept_until=NOW))
    other = a_record(P.ROLLED_BACK, 0, id="r-2", alias="r-2", kept_until=NOW + 60)
    reading = a_reading({})
    assert asked(state, reading, table=table) == {}  # the other has not begun: it may
    state = keep(state, other)
    assert asked(state, reading, table=table) == {("floor", CANARY): 1}
    assert asked(state, reading, NOW + 60, table) == {("ceiling", CANARY): 0}


def test_the_demand_is_the_most_of_the_last_minute() -> None:
    table, demands = a_table(), Demands()
    (planned,) = planned_in(table).values()
    for now, count in ((0.0, 5), (1.0, 20), (2.0, 0), (3.0, 7)):
        demands.take(a_reading({CANARY: count}), [planned], now)
    canary, stable = demands.of_canary(planned), demands.of_stable(planned)
    assert canary is not None
    assert stable is not None
    assert (canary.requests, stable.requests) == (20, 20)
    demands.take(a_reading({CANARY: 1}), [planned], 2.5 + WINDOW_S)
    later = demands.of_canary(planned)
    assert later is not None
    assert later.requests == 7
    demands.take(None, [planned], 70.0)
    assert demands.of_canary(planned) is None
