"""Control's state: what each change does, and what a start makes of the store and the board."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.table import parse_table
from modelyard.contract.errors import ConfigError, InvalidRequest, NotFound
from modelyard.control.published import Override, Published
from modelyard.control.rollout_states import LATEST, keep
from modelyard.control.state import (
    MAX_OVERRIDES,
    OLDER_THAN_THE_BOARD,
    By,
    State,
    StoredOverride,
    add_override,
    decode,
    published,
    release,
    remove_override,
    revoke,
    set_weight,
    take_over,
)
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.record import RolloutRecord, decide
from modelyard.testing.control_world import table_with_a_rollout

NOW = 1_000.0
BY = By("ops-1", "because", NOW)


def override(
    identifier: str = "o-1", target: str = "gen@1", expires_at: float = NOW + 60
) -> StoredOverride:
    return StoredOverride(
        id=identifier,
        kind="freeze",
        target=target,
        value=None,
        author="ops-1",
        reason="because",
        expires_at=expires_at,
    )


def a_full_state() -> State:
    state = set_weight(State(epoch=3), "r-1", 25.0, BY, finish=False)
    state = set_weight(state, "r-2", 100.0, BY, finish=True)
    state = revoke(state, "key-1", BY)
    return add_override(state, override(), NOW)


def test_what_is_written_is_read_back_whole() -> None:
    state = a_full_state()
    assert decode(state.encode()) == state


@pytest.mark.parametrize(
    "data", [b"", b"{}x", b'{"schema": "modelyard/control/v9"}', b'{"news": 1}']
)
def test_what_another_release_wrote_is_not_guessed_at(data: bytes) -> None:
    with pytest.raises(ConfigError, match="run the release that wrote it"):
        decode(data)


def test_each_change_has_a_revision_of_its_own() -> None:
    assert (a_full_state().revision, published(a_full_state(), NOW).order) == (4, (3, 4))


def test_a_finished_rollout_never_starts_again() -> None:
    state = a_full_state()
    for percent in (0.0, 100.0):
        with pytest.raises(InvalidRequest, match="finished at 100 %") as caught:
            set_weight(state, "r-2", percent, BY, finish=False)
        assert caught.value.reason == "finished"
    word = published(state, NOW)
    assert (word.weight("r-2"), word.finished) == (100.0, frozenset({"r-2"}))


@pytest.mark.parametrize("percent", [-0.1, 100.1, float("nan"), float("inf")])
def test_a_weight_is_a_percentage(percent: float) -> None:
    with pytest.raises(InvalidRequest, match="from 0 to 100"):
        set_weight(State(), "r", percent, BY, finish=False)


def test_a_key_is_revoked_once_and_its_first_revocation_kept() -> None:
    state = revoke(State(), "k", BY)
    assert revoke(state, "k", By("other", "again", NOW + 1)) is state


def test_an_override_ends_by_the_clock() -> None:
    state = add_override(State(), override(), NOW)
    assert [one.left_s for one in published(state, NOW + 20).overrides] == [40.0]
    assert published(state, NOW + 60).overrides == ()
    with pytest.raises(NotFound):
        remove_override(state, "o-1", NOW + 60)
    assert remove_override(state, "o-1", NOW + 59).overrides == ()


def test_a_second_override_for_a_target_replaces_the_first() -> None:
    state = add_override(add_override(State(), override(), NOW), override("o-2"), NOW)
    assert [one.id for one in state.overrides] == ["o-2"]
    state = add_override(state, override("o-3", "other@1"), NOW)
    assert [one.id for one in state.overrides] == ["o-2", "o-3"]


def test_overrides_are_bounded_and_expired_ones_make_room() -> None:
    state = State(overrides=tuple(override(f"o-{n}", f"m@{n}") for n in range(MAX_OVERRIDES)))
    with pytest.raises(InvalidRequest, match="remove some"):
        add_override(state, override("more", "more@1"), NOW)
    later = add_override(state, override("more", "more@1", NOW + 999), NOW + 60)
    assert [one.id for one in later.overrides] == ["more"]


def test_a_control_that_starts_on_its_own_store_changes_the_epoch_only() -> None:
    state = a_full_state()
    following = take_over(state, published(state, NOW), NOW)
    assert following.epoch == 4
    assert following.model_copy(update={"epoch": 3, "revision": state.revision}) == state


def test_a_first_control_on_an_empty_board_holds_nothing() -> None:
    following = take_over(State(), None, NOW)
    assert (following.epoch, following.held, following.weights) == (1, "", {})


def test_a_lost_store_is_filled_from_the_board_and_rollouts_are_held() -> None:
    lost = a_full_state()
    word = published(lost, NOW)
    following = take_over(State(), word, NOW + 30)
    again = published(following, NOW + 30)
    assert again.order > word.order
    assert (again.weights, again.finished, again.revoked) == (
        word.weights,
        word.finished,
        word.revoked,
    )
    assert [(one.kind, one.target, one.author) for one in again.overrides] == [
        ("freeze", "gen@1", "ops-1")
    ]
    assert following.held == again.held == OLDER_THAN_THE_BOARD
    assert release(following).held == ""
    assert release(State()) == State()


def test_an_older_copy_of_the_store_takes_the_boards_weights_and_keeps_its_revocations() -> None:
    older = revoke(set_weight(State(epoch=3), "r-1", 5.0, BY, finish=False), "old-key", BY)
    word = Published(3, 9, (("r-1", 50.0),), frozenset({"new-key"}))
    following = take_over(older, word, NOW)
    assert following.weights["r-1"].percent == 50.0
    assert set(following.revoked) == {"old-key", "new-key"}
    assert following.held


@given(
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.none() | st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_a_new_epoch_is_later_than_store_and_board(
    kept: tuple[int, int], held: tuple[int, int] | None
) -> None:
    mirror = None if held is None else Published(*held)
    following = take_over(State(epoch=kept[0], revision=kept[1]), mirror, NOW)
    order = (following.epoch, following.revision)
    assert order > kept
    assert following.epoch > max(kept[0], held[0] if held else 0) - (held is None)
    assert held is None or order > held


HELD = RolloutRecord(
    id="r-1",
    alias="chat",
    stable="gen@1",
    canary="gen@2",
    phase=RolloutPhase.HOLDING,
    percent=25.0,
    since=NOW,
    weight_since=NOW,
    author="control",
    reason="a step",
)


def a_later_word(percent: float, finished: bool, *overrides: Override) -> Published:
    return Published(
        epoch=9,
        revision=9,
        weights=(("r-1", percent),),
        finished=frozenset({"r-1"} if finished else ()),
        overrides=overrides,
    )


def test_a_record_and_its_weight_are_of_one_revision() -> None:
    state = keep(State(), HELD)
    assert state.revision == 1
    assert (state.weights["r-1"].percent, state.weights["r-1"].finished) == (25, False)
    assert keep(state, HELD) is state
    assert decode(state.encode()) == state


def test_an_end_is_never_taken_back() -> None:
    over = HELD.model_copy(update={"phase": RolloutPhase.ROLLED_BACK, "percent": 0.0})
    state = keep(State(), over)
    assert keep(state, HELD) is state


@pytest.mark.parametrize(
    ("percent", "finished", "phase"),
    [
        (25, False, RolloutPhase.HOLDING),
        (5, False, RolloutPhase.PAUSED),
        (100, False, RolloutPhase.PAUSED),
        (0, True, RolloutPhase.ROLLED_BACK),
        (100, True, RolloutPhase.PROMOTED),
    ],
)
def test_a_later_word_of_the_board_beats_the_record_of_an_older_store(
    percent: float, finished: bool, phase: RolloutPhase
) -> None:
    state = take_over(keep(State(epoch=3), HELD), a_later_word(percent, finished), NOW + 5)
    record = state.rollouts["r-1"]
    assert (record.phase, record.percent, record.over) == (phase, percent, finished)
    assert (state.weights["r-1"].percent, state.weights["r-1"].finished) == (percent, finished)
    assert state.held == OLDER_THAN_THE_BOARD
    if phase is not HELD.phase:
        assert record.history[-1].author == "board"


def test_what_control_wished_for_is_not_restored_as_an_operators_override() -> None:
    floor = Override("floor", "gen@2", 1.0, "rollout:r-1", "kept", 300.0)
    other = Override("floor", "gen@1", 2.0, "ops-1", "x", 300.0)
    word = a_later_word(0, True, floor, other)
    state = take_over(keep(State(epoch=3), HELD), word, NOW)
    assert [one.author for one in state.overrides] == ["ops-1"]
    assert state.rollouts["r-1"].kept_until == NOW + 300


def test_logs_of_rollouts_long_over_are_cut_and_their_ids_are_not() -> None:
    state = State()
    for number in range(LATEST + 3):
        record = HELD.model_copy(update={"id": f"r-{number}"})
        at = NOW + number
        for _ in range(2):
            record, _ = decide(record, RolloutPhase.PAUSED, "paused", "x", at, author="ops-1")
        record, _ = decide(record, RolloutPhase.PROMOTED, "promoted", "x", at)
        state = keep(state, record)
    lengths = [len(state.rollouts[f"r-{number}"].history) for number in range(LATEST + 3)]
    assert lengths == [0] * 3 + [3] * LATEST


def test_every_ingress_is_told_of_what_a_table_names_and_of_the_latest_ends_only() -> None:
    state = set_weight(State(), "runs", 5.0, BY, finish=False)
    for number in range(LATEST + 3):
        by = By("ops-1", "x", NOW + number)
        state = set_weight(state, f"r-{number}", 0.0, by, finish=True)
    record = table_with_a_rollout()
    record["routes"]["chat"]["rollout"]["id"] = "r-1"
    word = published(state, NOW, table=parse_table(record))
    gone = {"r-0", "r-2"}
    assert {name for name, _ in word.weights} == state.weights.keys() - gone
    assert word.finished == state.weights.keys() - gone - {"runs"}
    assert {name for name, _ in published(state, NOW).weights} == state.weights.keys()


@pytest.mark.parametrize("percent", [25.0, 100.0])
def test_a_rollback_that_was_told_before_it_was_stored_is_believed_and_nothing_else(
    percent: float,
) -> None:
    """The store has what was written meanwhile, which the board has not heard of."""
    state = keep(State(epoch=3, revision=6), HELD)
    if percent == 100:
        promoted, _ = decide(HELD, RolloutPhase.PROMOTED, "promoted", "x", NOW, percent=100.0)
        state = keep(state, promoted)
    state = revoke(state, "key-1", BY)
    word = Published(
        3, 12, weights=(("r-1", 0.0), ("r-2", 7.0)), finished=frozenset({"r-1"}), stored=7
    )
    after = take_over(state, word, NOW)
    assert (after.rollouts["r-1"].phase, after.rollouts["r-1"].percent) == (
        RolloutPhase.ROLLED_BACK,
        0,
    )
    assert after.weights.keys() == {"r-1"}
    assert (after.weights["r-1"].percent, after.weights["r-1"].finished) == (0, True)
    assert after.held == ""
    assert after.revoked.keys() == {"key-1"}
    assert (after.epoch, after.revision) > word.order
