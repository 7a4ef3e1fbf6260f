"""Greedy-dual-size-frequency."""

from __future__ import annotations

from modelyard.scaling.gdsf import Worth


def test_what_is_dear_to_load_small_and_often_asked_for_is_worth_most() -> None:
    plain = Worth().asked("a@1", 3, 10.0, 5.0).of("a@1")
    assert plain == 8.0  # (1 + 3) x 10 / 5
    assert Worth().asked("a@1", 3, 20.0, 5.0).of("a@1") > plain
    assert Worth().asked("a@1", 3, 10.0, 2.5).of("a@1") > plain
    assert Worth().asked("a@1", 9, 10.0, 5.0).of("a@1") > plain


def test_a_look_without_requests_changes_nothing() -> None:
    worth = Worth().asked("a@1", 2, 10.0, 5.0)
    assert worth.asked("a@1", 0, 99.0, 1.0) is worth


def test_an_old_favourite_loses_to_what_was_loaded_after_many_evictions() -> None:
    worth = Worth().asked("old@1", 10, 1.0, 1.0)
    for number in range(20):
        guest = f"guest@{number}"
        worth = worth.asked(guest, 0, 1.0, 1.0).evicted(guest).only({"old@1"})
    worth = worth.asked("new@1", 0, 1.0, 1.0)
    assert worth.of("new@1") > worth.of("old@1")


def test_what_left_by_itself_is_forgotten_and_moves_no_clock() -> None:
    worth = Worth().asked("a@1", 5, 10.0, 5.0).only(())
    assert (worth.clock, worth.hits) == (0.0, {})
