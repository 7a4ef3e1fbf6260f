"""A version's replicas over its cells, and cells that ask in turn."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.scaling.deal import COUNTING, GONE_S, BoardView, CellLoad, Deal, Dealer
from modelyard.scaling.deal import deal as deal_after
from modelyard.scaling.queued_plus_ongoing import Decision
from modelyard.scaling.version_signal import Bound, Drain, VersionSignal

GEN, B = "gen@1.0.0", "gen@1.0.0--b"


def view(waiting: float = 0, **changes: object) -> BoardView:
    return BoardView(replace(VersionSignal(waiting), **changes), 0.4, 600.0)  # type: ignore[arg-type]


def deal(cells: list[CellLoad], board: BoardView) -> dict[str, Decision]:
    """The first of a version."""
    return deal_after(cells, board, Deal()).parts


def load(app: str = GEN, ongoing: float = 0, target: int = 1, least: int = 0) -> CellLoad:
    return CellLoad(app, ongoing, 10.0, target, least, 4)


def by_ops(replicas: int) -> Bound:
    return Bound(replicas, "ops-1", 60.0)


def replicas(decisions: dict[str, Decision]) -> tuple[int, ...]:
    return tuple(decisions[app].replicas for app in sorted(decisions))


def test_one_cell_is_decided_as_its_version_and_says_no_more() -> None:
    (decision,) = deal([load(ongoing=15)], view(waiting=10)).values()
    assert decision == Decision(3, "10 waiting + 15 ongoing / 10")


def test_the_load_of_all_cells_is_summed_and_dealt_out_in_order() -> None:
    made = deal([load(B, 20, 2), load(GEN, 20, 2)], view(waiting=15))
    why = "of 6 in 2 cells: 15 waiting + 40 ongoing / 10"
    assert made == {GEN: Decision(4, why), B: Decision(2, why)}


def test_half_a_replica_in_each_cell_is_one_replica() -> None:
    assert replicas(deal([load(GEN, 5, 1), load(B, 5, 1)], view())) == (1, 0)


def test_floors_ceilings_and_wishes_are_of_the_version() -> None:
    both = [load(GEN, target=0), load(B, target=0)]
    assert replicas(deal(both, view(floor=by_ops(5)))) == (4, 1)
    assert replicas(deal(both, view(wish=by_ops(1)))) == (1, 0)
    assert replicas(deal(both, view(waiting=90, ceiling=by_ops(3)))) == (3, 0)


def test_a_ceiling_stops_at_what_the_cells_must_have() -> None:
    made = deal([load(GEN, 30, 3, least=1), load(B, 30, 3, least=1)], view(ceiling=by_ops(0)))
    assert replicas(made) == (1, 1)
    assert made[GEN].why.endswith("ceiling 0 by ops-1, at least min_replicas 2")


def test_a_drained_cell_hands_its_work_over() -> None:
    made = deal([load(GEN, 30, 3), load(B, 0, 0)], view(drained=(Drain(GEN, 60.0),)))
    assert made[GEN] == Decision(3, "drained: held")
    assert made[B].replicas == 3


def test_a_drained_cell_shrinks_once_nothing_of_it_is_under_way_unless_it_moves() -> None:
    idle = [load(GEN, 0, 3), load(B, 30, 3)]
    done = deal(idle, view(drained=(Drain(GEN, 60.0),)))
    assert done[GEN] == Decision(0, "drained: at min_replicas")
    moves = deal(idle, view(drained=(Drain(GEN, 60.0, stays=True),)))
    assert moves[GEN] == Decision(3, "drained: held")
    assert (done[B].replicas, moves[B].replicas) == (3, 3)


def test_a_drained_cell_goes_with_a_ceiling_of_zero_though_it_has_requests() -> None:
    drains = (Drain(GEN, 60.0, stays=True),)
    assert replicas(deal([load(GEN, 0, 1)], view(drained=drains))) == (1,)
    made = deal([load(GEN, 5, 1)], view(drained=drains, ceiling=by_ops(0)))
    assert made[GEN] == Decision(0, "drained: at min_replicas")


def test_a_drained_cell_that_was_held_is_dealt_anew_when_it_is_done() -> None:
    dealer, board = Dealer(), view(drained=(Drain(GEN, 60.0),))
    for at in range(3):
        decision = dealer.ask(load(ongoing=5, target=2), board, at / 10)
    assert decision.replicas == 2
    for at in range(3):
        decision = dealer.ask(load(target=2), board, 1 + at / 10)
    assert decision.replicas == 0


def test_a_silent_board_takes_nothing_away_in_any_cell() -> None:
    silent = BoardView(VersionSignal(), 10.0, 600.0)
    assert replicas(deal([load(GEN, target=2), load(B, target=3)], silent)) == (2, 3)


def test_a_cell_keeps_what_it_has_until_all_have_asked() -> None:
    dealer, board = Dealer(), view(wish=by_ops(1))
    first = [dealer.ask(load(app, target=0), board, 0.1) for app in (B, GEN)]
    assert first == [Decision(0, COUNTING)] * 2
    dealer.ask(load(B, target=0), board, 0.2)
    dealer.ask(load(GEN, target=0), board, 0.2)
    assert dealer.ask(load(B, target=0), board, 0.3).replicas == 0
    assert dealer.ask(load(GEN, target=0), board, 0.3).replicas == 1


def test_in_a_freeze_each_cell_keeps_what_it_has_and_an_old_deal_is_forgotten() -> None:
    dealer = Dealer()
    for at in range(3):
        decision = dealer.ask(load(target=1), view(waiting=40), at / 10)
    assert decision.replicas == 4
    frozen = view(waiting=40, freeze=by_ops(0))
    assert dealer.ask(load(target=2), frozen, 0.3) == Decision(2, "frozen by ops-1")
    assert dealer.ask(load(target=2), view(), 0.4) == Decision(2, COUNTING)


def test_a_cell_that_asks_no_more_counts_no_more() -> None:
    dealer, board = Dealer(), view(waiting=20)
    for _ in range(3):
        dealer.ask(load(GEN, target=0), board, 0.0)
        dealer.ask(load(B, target=2), board, 0.0)
    assert not dealer.is_asked(GONE_S + 0.1)
    for tick in range(int(10 * GONE_S) + 5):
        decision = dealer.ask(load(GEN, target=0), board, tick / 10)
    assert decision == Decision(2, "20 waiting + 0 ongoing / 10")


def test_a_controller_that_stood_still_misses_no_cell() -> None:
    dealer, board = Dealer(), view(waiting=40)
    for tick in range(4):
        for app in (GEN, B):
            dealer.ask(load(app, target=2), board, tick / 10)
    for tick in range(4):
        first = dealer.ask(load(GEN, target=2), board, 60 + tick / 10)
        assert first.replicas == 2
        dealer.ask(load(B, target=2), board, 60 + tick / 10)


@settings(max_examples=60)
@given(
    targets=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    before=st.integers(0, 14),
    after=st.integers(0, 14),
    changed_at=st.integers(0, 12),
    slow=st.lists(st.integers(0, 5), min_size=3, max_size=3),
)
def test_under_a_steady_load_the_cells_come_to_rest(
    targets: list[int], before: int, after: int, changed_at: int, slow: list[int]
) -> None:
    """Each cell asks in turn; Serve follows each after a delay of its own, or at once."""
    dealer, apps = Dealer(), [GEN, B, "gen@1.0.0--c"]
    now, since = list(targets), [0, 0, 0]
    seen = []
    for tick in range(40):
        board = view(waiting=10.0 * (before if tick < changed_at else after))
        for n, app in enumerate(apps):
            wanted = dealer.ask(load(app, target=now[n]), board, tick / 10).replicas
            since[n] = since[n] + 1 if wanted != now[n] else 0
            if since[n] > slow[n]:
                now[n], since[n] = wanted, 0
        seen.append(tuple(now))
    assert len(set(seen[-10:])) == 1
    assert sum(now) == min(after, 12)
