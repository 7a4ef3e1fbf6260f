"""Outcomes of a rollout on their way to control."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.ingress.outcomes import (
    MAX_BATCH,
    MAX_BATCHES,
    MAX_KEPT,
    MAX_SENT,
    MAX_WORDS,
    Outcomes,
)
from modelyard.rollout.outcome import Judgement, Outcome, OutcomeBatch, Source
from modelyard.telemetry.request_log import RequestRecord

JUDGEMENT = Judgement("r-1", "canary", "unit-1", "", True, "feedback")


def record(**changes: Any) -> RequestRecord:
    made = RequestRecord(
        ts="2026-11-30T00:00:00.000+00:00",
        request_id="r",
        route="/v1/generate",
        tenant="alpha",
        tier="paid",
        version="gen@2.0.0",
        arm="canary",
        rollout="r-1",
        label="retrieval",
        conversation="0123456789abcdef" * 2,
        stream=True,
        status=200,
        output_tokens=12,
        ttft_ms=250.0,
        duration_ms=1500.0,
    )
    return replace(made, **changes)


def outcomes(seed: int = 1) -> Outcomes:
    return Outcomes(random.Random(seed), 0.0)


def only(*records: RequestRecord) -> tuple[Outcome, ...]:
    collector = outcomes()
    for one in records:
        collector.add(one)
    return tuple(one for batch in collector.batches(1.0) for one in batch.outcomes)


def test_an_answered_request_is_one_small_record() -> None:
    assert only(record()) == (
        Outcome(
            rollout="r-1",
            arm="canary",
            tier="paid",
            label="retrieval",
            conversation="0123456789ab",
            code="ok",
            failed=False,
            cancelled=False,
            ttft_s=0.25,
            e2e_s=1.5,
            output_tokens=12,
        ),
    )


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_what_we_failed_is_failed_and_has_no_duration(status: int) -> None:
    (one,) = only(record(status=status, code="replica_failed"))
    assert (one.failed, one.cancelled, one.e2e_s, one.code) == (True, False, None, "replica_failed")


def test_a_client_that_left_is_shown_and_no_error() -> None:
    (one,) = only(record(status=499, code="cancelled"))
    assert (one.failed, one.cancelled, one.e2e_s) == (False, True, None)


def test_only_a_stream_has_a_first_token() -> None:
    unary, unbegun = only(record(stream=False), record(ttft_ms=None, status=504))
    assert (unary.ttft_s, unbegun.ttft_s) == (None, None)


@pytest.mark.parametrize(
    "changes",
    [
        *({"status": status} for status in (400, 401, 403, 404, 413, 429)),
        {"rollout": ""},
        {"purpose": "feedback"},
    ],
)
def test_what_says_nothing_about_an_arm_is_no_outcome(changes: dict[str, Any]) -> None:
    assert only(record(**changes)) == ()


def test_nothing_is_sent_while_nothing_happens_and_at_most_once_a_second() -> None:
    collector = outcomes()
    assert collector.batches(1.0) == ()
    collector.add(record())
    assert collector.batches(1.1) == ()
    assert [batch.number for batch in collector.batches(2.0)] == [1]
    collector.add(record())
    assert [batch.number for batch in collector.batches(2.1)] == [1]
    assert [batch.number for batch in collector.batches(3.0)] == [1, 2]


class FakeControl:
    """Takes each batch once, by its number, as control does."""

    def __init__(self) -> None:
        self.number = 0
        self.took: list[OutcomeBatch] = []

    def report(self, batches: tuple[OutcomeBatch, ...]) -> int:
        new = [batch for batch in batches if batch.number > self.number]
        self.took += new
        self.number = max([self.number, *(batch.number for batch in new)])
        return self.number


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),  # outcomes of this second
            st.sampled_from(["lost", "reply_lost", "taken", "doubled", "late_reply"]),
        ),
        max_size=MAX_BATCHES - 2,
    )
)
def test_each_outcome_is_taken_once_whatever_is_lost_or_doubled(
    seconds: list[tuple[int, str]],
) -> None:
    collector, control, made, late = outcomes(), FakeControl(), 0, 0
    for now, (count, fate) in enumerate([*seconds, (0, "taken"), (0, "taken")], start=1):
        for _ in range(count):
            collector.add(record(tier=str(made)))
            made += 1
        batches = collector.batches(float(now))
        if fate == "lost":
            continue
        number = control.report(batches)
        if fate == "doubled":
            number = control.report(batches)
        if fate == "late_reply":
            collector.taken(late)
            late = number
        elif fate != "reply_lost":
            collector.taken(number)
    tiers = [int(one.tier) for batch in control.took for one in batch.outcomes]
    assert tiers == list(range(made))
    assert collector.batches(1000.0) == ()


def test_above_the_bound_a_uniform_sample_is_kept_with_its_rate() -> None:
    collector, count = outcomes(), 5 * MAX_BATCH
    for n in range(count):
        collector.add(record(arm="canary" if n % 10 == 0 else "stable", tier=str(n)))
    (batch,) = collector.batches(1.0)
    assert (len(batch.outcomes), batch.rate) == (MAX_BATCH, 0.2)
    canary = sum(one.arm == "canary" for one in batch.outcomes)
    assert canary / MAX_BATCH == pytest.approx(0.1, abs=0.03)
    # Of the beginning as much as of the end.
    late = sum(int(one.tier) >= count / 2 for one in batch.outcomes)
    assert late / MAX_BATCH == pytest.approx(0.5, abs=0.05)


def test_a_second_below_the_bound_is_whole() -> None:
    collector = outcomes()
    for _ in range(MAX_BATCH):
        collector.add(record())
    (batch,) = collector.batches(1.0)
    assert (len(batch.outcomes), batch.rate) == (MAX_BATCH, 1.0)


def test_pairs_are_never_sampled() -> None:
    collector = outcomes()
    (stable,) = only(record(arm="stable"))
    for _ in range(2 * MAX_BATCH):
        collector.add(record())
    for arm in ("stable", "shadow"):
        collector.add_outcome(replace(stable, arm=arm, pair="p-1"))
    (batch,) = collector.batches(1.0)
    assert [one.arm for one in batch.outcomes if one.pair] == ["stable", "shadow"]
    assert batch.rate == 0.5


def test_the_last_of_several_words_of_a_source_counts_and_too_many_are_refused() -> None:
    collector = outcomes()
    assert collector.judge(JUDGEMENT)
    assert collector.judge(replace(JUDGEMENT, good=False))
    for n in range(MAX_WORDS - 1):
        assert collector.judge(replace(JUDGEMENT, unit=str(n)))
    assert not collector.judge(replace(JUDGEMENT, unit="one more"))
    assert collector.judge(JUDGEMENT)
    (batch,) = collector.batches(1.0)
    assert batch.judgements[0] == JUDGEMENT
    assert len(batch.judgements) == MAX_WORDS


def test_a_users_word_does_not_overwrite_the_judges() -> None:
    collector = outcomes()
    judged = replace(JUDGEMENT, good=False, source="judge", pair="p-1")
    assert collector.judge(judged)
    assert collector.judge(JUDGEMENT)
    assert collector.judge(replace(judged, arm="stable"))
    (batch,) = collector.batches(1.0)
    # Pairs first: where two speak of one answer control takes the first.
    assert batch.judgements == (judged, replace(judged, arm="stable"), JUDGEMENT)


def test_a_word_without_a_pair_does_not_replace_one_of_a_pair() -> None:
    collector = outcomes()
    judged = replace(JUDGEMENT, source="judge", pair="p-1")
    collector.judge(judged)
    collector.judge(replace(judged, good=False, pair=""))
    (batch,) = collector.batches(1.0)
    assert batch.judgements == (judged,)


@pytest.mark.parametrize(("many", "few"), [("feedback", "judge"), ("judge", "feedback")])
def test_no_source_takes_the_room_of_another(many: Source, few: Source) -> None:
    collector = outcomes()
    for n in range(MAX_WORDS + 5):
        collector.judge(replace(JUDGEMENT, unit=str(n), source=many))
    assert collector.judge(replace(JUDGEMENT, unit="mine", source=few))
    (batch,) = collector.batches(1.0)
    assert [one.unit for one in batch.judgements if one.source == few] == ["mine"]


def test_a_4xx_of_the_replica_is_a_refusal_and_no_failure() -> None:
    (one,) = only(record(status=400, code="invalid_request", refused_by="gen@2.0.0"))
    assert (one.refused, one.failed, one.cancelled, one.e2e_s) == (True, False, False, None)
    assert (one.arm, one.code) == ("canary", "invalid_request")


def test_what_the_other_arm_answers_counts_as_a_refusal_of_the_drawn_one() -> None:
    collector = outcomes()
    drawn = record(status=0, ttft_ms=None, output_tokens=0, duration_ms=0.0)
    collector.add_turned(drawn, "invalid_request")
    drawn.arm, drawn.rollout, drawn.status = "stable", "", 200  # as it then ends
    collector.add(drawn)
    (batch,) = collector.batches(1.0)
    (one,) = batch.outcomes
    assert (one.arm, one.refused, one.failed, one.code) == (
        "canary",
        True,
        False,
        "invalid_request",
    )


def test_a_turned_request_of_no_rollout_is_no_outcome() -> None:
    collector = outcomes()
    collector.add_turned(record(rollout=""), "invalid_request")
    assert collector.batches(1.0) == ()


def test_while_control_is_away_the_oldest_go() -> None:
    collector = outcomes()
    for now in range(1, MAX_BATCHES + 11):
        collector.add(record())
        batches = collector.batches(float(now))
    assert len(batches) == MAX_BATCHES
    assert batches[0].number == 11


def test_memory_and_a_report_are_bounded_whatever_comes() -> None:
    collector = outcomes()
    numbers: list[int] = []
    for now in range(1, 21):
        for _ in range(MAX_BATCH):
            collector.add(record())
        batches = collector.batches(float(now))
        assert sum(len(batch.outcomes) for batch in batches) <= MAX_SENT
    while batches := collector.batches(20.0):
        numbers += [batch.number for batch in batches]
        collector.taken(numbers[-1])
    assert numbers == list(range(21 - MAX_KEPT // MAX_BATCH, 21))


def test_a_word_about_batches_that_are_not_there_takes_none_that_come() -> None:
    collector = outcomes()
    collector.taken(5)
    collector.add(record())
    assert [batch.number for batch in collector.batches(1.0)] == [1]


def test_nothing_is_late_at_full_rate_while_control_acknowledges_every_five_seconds() -> None:
    """As control does: it hears each report, and acknowledges what it had when it last saved."""
    collector = outcomes()
    heard: list[int] = []
    for now in range(1, 41):
        for _ in range(MAX_BATCH):
            collector.add(record())
        new = [one.number for one in collector.batches(float(now)) if one.number not in heard]
        heard += new
        assert new == [now]
        if now % 5 == 0:
            saved = heard[-1]
        if now % 5 == 1 and now > 1:
            collector.taken(saved)
    assert heard == list(range(1, 41))
