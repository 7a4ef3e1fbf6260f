"""Replicas that find no place, and the cells that take them over."""

from __future__ import annotations

from dataclasses import replace

from modelyard.scaling.deal import BoardView, CellLoad, Dealer
from modelyard.scaling.split import CellSize
from modelyard.scaling.unplaced import RETRY_S, UNPLACED_S, Unplaced, placeable
from modelyard.scaling.version_signal import VersionSignal

GEN, B = "gen@1.0.0", "gen@1.0.0--b"


def test_a_cell_is_full_after_a_while_in_which_serve_fills_it_in_vain() -> None:
    unplaced = Unplaced()
    unplaced.look(GEN, 4, 2, 0.0)
    unplaced.look(GEN, 4, 2, UNPLACED_S - 1)
    assert unplaced.full(UNPLACED_S - 1) == {}
    unplaced.look(GEN, 4, 2, UNPLACED_S)
    assert unplaced.full(UNPLACED_S) == {GEN: 2}
    assert unplaced.full(UNPLACED_S + RETRY_S) == {}


def test_a_replica_that_comes_or_a_board_that_knows_little_ends_the_wait() -> None:
    for there in (4, None):
        unplaced = Unplaced()
        unplaced.look(GEN, 4, 2, 0.0)
        unplaced.look(GEN, 4, there, 60.0)
        unplaced.look(GEN, 4, 2, UNPLACED_S)
        assert unplaced.full(UNPLACED_S) == {}


def test_a_full_cell_holds_no_more_but_its_minimum_where_others_have_room() -> None:
    sizes = [CellSize(GEN, 1, 4, 4), CellSize(B, 0, 4, 0)]
    held = [replace(sizes[0], max=1), sizes[1]]
    assert placeable(sizes, {GEN: 0}, 5) == held
    assert placeable(sizes, {GEN: 0}, 6) == sizes


def test_what_finds_no_place_is_dealt_to_another_cell_and_stays_there() -> None:
    dealer, there = Dealer(), {GEN: 2, B: 0}
    targets = {GEN: 4, B: 0}
    seen = []
    for second in range(int(UNPLACED_S + RETRY_S) + 60):
        for app in targets:
            load = CellLoad(app, 0.0, 10.0, targets[app], 0, 4)
            board = BoardView(VersionSignal(40), 0.4, 600.0, there)
            targets[app] = dealer.ask(load, board, float(second)).replicas
        there = {GEN: min(targets[GEN], 2), B: targets[B]}
        seen.append(tuple(targets.values()))
    assert seen[int(UNPLACED_S) - 1] == (4, 0)
    assert set(seen[int(UNPLACED_S) + 10 :]) == {(2, 2)}


def test_with_no_room_elsewhere_replicas_wait_for_their_place() -> None:
    dealer = Dealer()
    board = BoardView(VersionSignal(40), 0.4, 600.0, {GEN: 2})
    for second in range(int(UNPLACED_S) + 60):
        load = CellLoad(GEN, 0.0, 10.0, 4, 0, 4)
        assert dealer.ask(load, board, float(second)).replicas == 4
