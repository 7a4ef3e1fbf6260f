import itertools
import random
from collections import Counter

import pytest

from modelyard.admission.outcome import (
    EVICTED,
    EXPIRED_IN_QUEUE,
    QUEUE_FULL,
    WAIT_OVER_DEADLINE,
    Admitted,
    Outcome,
    Refused,
    Waiting,
)
from modelyard.admission.ticket import Ticket
from modelyard.admission.version_queue import VersionQueue

numbers = itertools.count(1)


def ticket(
    tenant: str = "t",
    band: str = "batch",
    *,
    arrived: float = 0.0,
    within: float = 10.0,
    tokens: int = 1,
    max_requests: int | None = None,
    max_tokens: int | None = None,
    streams: bool = False,
    whole_within: float | None = None,
    length: float | None = None,
) -> Ticket:
    return Ticket(
        next(numbers),
        band,
        tenant,
        "chat",
        1.0,
        arrived,
        arrived + within,
        tokens,
        length,
        max_requests=max_requests,
        max_tokens=max_tokens,
        streams=streams,
        whole_by=None if whole_within is None else arrived + whole_within,
    )


def queue(share: int = 2, held_s: float | None = None) -> VersionQueue:
    """With `held_s`, one that has learned: its slots are all held for so long."""
    made = VersionQueue()
    made.set_share(share, share)
    for _ in range(0 if held_s is None else 100):
        one = ticket()
        made.take(one)
        made.finished(one, 0.0, -(held_s or 0.0), 0.0)
    return made


def busy(made: VersionQueue) -> list[Ticket]:
    running = [ticket() for _ in range(made.share)]
    for each in running:
        made.take(each)
    return running


def offered(made: VersionQueue, one: Ticket, now: float = 0.0) -> Outcome:
    return made.offer(one, now, random.Random(1))


def reason(outcome: Outcome) -> str:
    assert isinstance(outcome, Refused)
    assert 1 <= outcome.retry_after_s <= 120
    return outcome.reason


def test_a_free_slot_is_given_at_once() -> None:
    made = queue(2)
    assert [offered(made, ticket()) for _ in range(3)] == [Admitted(), Admitted(), Waiting()]
    assert (made.in_flight, made.waiting) == (2, 1)
    assert made.running_by_band == {"interactive": 0, "batch": 2, "shadow": 0}
    assert made.waiting_by_band == {"interactive": 0, "batch": 1, "shadow": 0}


def test_a_slot_given_back_goes_to_the_next() -> None:
    made = queue(1)
    first, second = ticket(), ticket()
    offered(made, first)
    offered(made, second)
    assert made.ready(0.0) == []
    made.finished(first, 1.0, 0.0, 0.5)
    assert made.ready(1.0) == [second]
    made.give_back(second)
    assert (made.in_flight, made.waiting) == (0, 0)


def test_a_deadline_shorter_than_most_answers_is_let_in_while_a_slot_is_free() -> None:
    made = queue(2, held_s=5.0)
    assert offered(made, ticket(within=0.5)) == Admitted()
    assert offered(made, ticket(within=0.5), 0.49) == Admitted()
    assert reason(offered(made, ticket(within=0.5), 0.1)) == WAIT_OVER_DEADLINE


def test_a_deadline_that_has_passed_is_refused_even_so() -> None:
    assert reason(offered(queue(), ticket(within=1.0), 1.0)) == WAIT_OVER_DEADLINE


def test_before_anything_is_known_as_many_may_wait_as_may_run() -> None:
    made = queue(3)
    outcomes = [offered(made, ticket()) for _ in range(8)]
    assert outcomes[:6] == [Admitted()] * 3 + [Waiting()] * 3
    assert [reason(each) for each in outcomes[6:]] == [QUEUE_FULL] * 2


def test_then_as_many_as_drain_in_a_part_of_the_slack() -> None:
    made = queue(8, held_s=0.4)  # 20 a second; 10 s less 0.4 s, of that 0.6
    busy(made)
    outcomes = Counter(type(offered(made, ticket())) for _ in range(200))
    assert outcomes == {Waiting: 115, Refused: 85}


def test_one_whose_turn_would_come_too_late_is_refused_for_that() -> None:
    made = queue(8, held_s=0.4)
    busy(made)
    for _ in range(100):
        offered(made, ticket(band="interactive"))
    assert reason(offered(made, ticket(within=2.0))) == WAIT_OVER_DEADLINE
    assert isinstance(offered(made, ticket("light", "interactive", within=2.0)), Waiting)


def test_the_wait_is_the_time_until_the_slots_before_it_come_free() -> None:
    made = queue(8, held_s=0.4)
    assert made.wait_s(ticket(), 0.0) == 0.0
    busy(made)
    assert made.wait_s(ticket(), 0.0) == pytest.approx(1 / 20)
    for _ in range(9):
        offered(made, ticket())
    assert made.wait_s(ticket(), 0.0) == pytest.approx(10 / 20)
    assert made.wait_s(ticket(band="interactive"), 0.0) == pytest.approx(1 / 20)
    made.set_share(4, 4)  # half the rate, and four that run too many
    assert made.wait_s(ticket(band="interactive"), 0.0) == pytest.approx(5 / 10)


def test_no_wait_is_told_before_a_rate_is_known() -> None:
    made = queue(1)
    busy(made)
    assert made.wait_s(ticket(), 0.0) is None


def test_an_arriving_high_one_evicts_the_newest_low_one() -> None:
    made = queue(2)
    busy(made)
    low = [ticket(), ticket()]
    for each in low:
        offered(made, each)
    outcome = offered(made, ticket(band="interactive"))
    assert isinstance(outcome, Waiting)
    [(evicted, why)] = outcome.evicted
    assert evicted is low[1]
    assert reason(why) == EVICTED
    assert made.waiting_by_band == {"interactive": 1, "batch": 1, "shadow": 0}


def test_one_that_cannot_make_it_any_more_expires_and_is_never_started() -> None:
    made = queue(1, held_s=2.0)
    running = busy(made)
    hurried = ticket(within=6.0)
    offered(made, hurried)
    assert made.next_expiry == 4.0
    assert made.expire(3.99, random.Random(1)) == []
    made.give_back(running[0])
    assert made.ready(4.0) == []
    assert made.next_expiry is not None
    assert made.next_expiry <= 4.0
    [(expired, why)] = made.expire(4.0, random.Random(1))
    assert expired is hurried
    assert reason(why) == EXPIRED_IN_QUEUE
    assert made.next_expiry is None
    assert made.expire(99.0, random.Random(1)) == []


def test_one_that_was_passed_over_can_still_be_cancelled_once() -> None:
    made = queue(1)
    running = busy(made)
    one = ticket(within=1.0)
    offered(made, one)
    made.give_back(running[0])
    assert made.ready(2.0) == []
    assert made.cancel(one)
    assert not made.cancel(one)
    assert made.expire(2.0, random.Random(1)) == []


def test_slow_answers_do_not_talk_the_queue_into_refusing_everybody() -> None:
    made = queue(50, held_s=30.0)  # most need thrice the deadline
    busy(made)
    outcomes = [offered(made, ticket(within=10.0)) for _ in range(20)]
    assert isinstance(outcomes[0], Waiting)
    assert made.next_expiry == pytest.approx(4.0)


def test_it_learns_its_way_back_from_slow_answers() -> None:
    made = queue(4, held_s=30.0)
    now = 0.0
    for _ in range(200):
        now += 0.1
        one = ticket(arrived=now)
        assert offered(made, one, now) == Admitted()  # a free slot is always given: so it learns
        made.finished(one, now + 0.1, now, now + 0.1)
    busy(made)
    assert made.wait_s(ticket(arrived=now), now) == pytest.approx(1 / 40)


def test_streams_and_whole_answers_have_margins_of_their_own() -> None:
    made = queue(1)
    for _ in range(100):
        whole, stream = ticket(), ticket(streams=True)
        for one, first_at in ((whole, 0.0), (stream, -3.8)):
            made.take(one)
            made.finished(one, 0.0, -4.0, first_at)
    busy(made)
    offered(made, ticket(within=10.0))
    assert made.next_expiry == pytest.approx(6.0)
    made = queue(1)
    for _ in range(10):
        stream = ticket(streams=True)
        made.take(stream)
        made.finished(stream, 0.0, -4.0, -3.8)
    busy(made)
    offered(made, ticket(within=10.0, streams=True))
    assert made.next_expiry == pytest.approx(9.8)


def test_a_stream_that_could_begin_in_time_and_not_end_is_not_begun() -> None:
    made = queue(1)
    for _ in range(10):
        stream = ticket(streams=True)
        made.take(stream)
        made.finished(stream, 0.0, -4.0, -3.8)  # 0.2 s to the first item, 4 in all
    busy(made)
    offered(made, ticket(within=10.0, streams=True, whole_within=10.0))
    assert made.next_expiry == pytest.approx(6.0)
    offered(made, ticket(within=5.0, streams=True, whole_within=60.0))
    assert made.next_expiry == pytest.approx(4.8)


def test_a_share_that_shrinks_takes_no_slot_away_and_starts_nobody() -> None:
    made = queue(4)
    running = busy(made)
    waiter = ticket()
    offered(made, waiter)
    made.set_share(2, 8)
    assert made.in_flight == 4
    for each, started in zip(running, ([], [], [waiter]), strict=False):
        made.give_back(each)
        assert made.ready(0.0) == started
    assert made.in_flight == 2


def test_without_a_replica_nothing_starts_and_what_waits_expires() -> None:
    made = queue(0)
    one = ticket(within=5.0)
    assert offered(made, one) == Waiting()
    assert made.ready(1.0) == []
    assert reason(offered(made, ticket())) == QUEUE_FULL
    assert [each for each, _ in made.expire(5.0, random.Random(1))] == [one]


def test_a_share_that_has_just_grown_lets_newcomers_wait_for_their_turn() -> None:
    made = queue(1)
    busy(made)
    first, second = ticket(), ticket(band="shadow")
    assert offered(made, first) == Waiting()
    made.set_share(3, 3)
    assert offered(made, second) == Waiting()
    assert made.ready(0.0) == [first, second]


def test_a_retry_gets_its_slot_without_asking_even_beside_its_first_one() -> None:
    made, one = queue(1), ticket()
    assert offered(made, one) == Admitted()
    made.take(one)
    assert made.in_flight == 2
    made.give_back(one)
    made.finished(one, 1.0, 0.0, None)
    assert made.in_flight == 0
    with pytest.raises(KeyError):
        made.give_back(one)


def test_the_limits_of_a_route_are_for_the_whole_fleet() -> None:
    made = queue(4)
    made.set_share(4, 8)
    busy(made)
    outcomes = [offered(made, ticket(max_requests=4)) for _ in range(3)]
    assert outcomes[:2] == [Waiting(), Waiting()]
    assert reason(outcomes[2]) == QUEUE_FULL
    many = ticket(tokens=60, max_tokens=100)
    made.cancel(many)
    assert reason(offered(made, many)) == QUEUE_FULL


def test_the_pressure_grows_to_one_as_the_queue_fills() -> None:
    made = queue(4)
    assert made.pressure(ticket()) == 0.0
    busy(made)
    pressures = []
    for _ in range(4):
        offered(made, ticket())
        pressures.append(made.pressure(ticket()))
    assert pressures == [0.25, 0.5, 0.75, 1.0]
    assert made.pressure(ticket(tenant="light")) == 0.25
    assert made.pressure(ticket(tenant="light", max_requests=5)) == 0.8
    assert made.pressure(ticket(tenant="light", max_tokens=4)) == 1.0


def test_a_tenants_flood_does_not_refuse_anothers_first_request() -> None:
    made = queue(4)
    busy(made)
    for _ in range(50):
        offered(made, ticket("flood"))
    light = ticket("light")
    outcome = offered(made, light)
    assert isinstance(outcome, Waiting)
    assert [each.tenant for each, _ in outcome.evicted] == ["flood"]
    made.set_share(6, 6)
    assert light in made.ready(0.0)


def test_retry_after_grows_with_what_is_ahead() -> None:
    made = queue(8, held_s=0.4)
    busy(made)
    outcomes = [offered(made, ticket(within=60.0)) for _ in range(1000)]
    assert made.waiting > 500
    assert isinstance(outcomes[-1], Refused)
    assert outcomes[-1].retry_after_s == pytest.approx(made.waiting / 20 * 1.25, rel=0.21)


def test_one_slot_more_is_no_way_around_a_full_queue() -> None:
    made = queue(2)
    busy(made)
    assert [offered(made, ticket()) for _ in range(2)] == [Waiting()] * 2
    made.set_share(3, 3)
    assert offered(made, ticket()) == Waiting()  # three may wait where three may run
    assert reason(offered(made, ticket())) == QUEUE_FULL


def test_the_rate_is_that_of_the_share() -> None:
    made = queue(4, held_s=0.4)
    made.set_share(4, 8)
    busy(made)
    assert made.wait_s(ticket(), 0.0) == pytest.approx(1 / 10)


def test_one_further_back_than_its_own_bound_is_refused_though_others_could_wait() -> None:
    made = queue(8, held_s=0.4)  # within 2 s: 0.6 of the 32 that drain in 1.6 s
    busy(made)
    for _ in range(18):
        offered(made, ticket(band="interactive", within=60.0))
    offered(made, ticket(within=60.0))
    assert offered(made, ticket(within=2.0)) == Waiting()
    assert reason(offered(made, ticket(within=2.0))) == QUEUE_FULL


def test_where_most_answers_take_nearly_the_whole_deadline_one_waits() -> None:
    made = queue(8, held_s=8.5)  # of 10 s
    busy(made)
    assert offered(made, ticket()) == Waiting()
    assert reason(offered(made, ticket())) == QUEUE_FULL
    made = queue(80, held_s=8.5)  # 9.4 a second: 0.6 of those that drain in 1.5 s
    busy(made)
    outcomes = Counter(type(offered(made, ticket())) for _ in range(20))
    assert outcomes == {Waiting: 8, Refused: 12}


def test_streams_that_take_nearly_their_whole_time_wait_alone_too() -> None:
    made = queue(80)
    for _ in range(100):
        stream = ticket(streams=True)
        made.take(stream)
        made.finished(stream, 0.0, -8.5, -8.4)  # 0.1 s to the first item, 8.5 in all
    busy(made)
    streams = [ticket(streams=True, whole_within=10.0) for _ in range(20)]
    assert Counter(type(offered(made, one)) for one in streams) == {Waiting: 8, Refused: 12}


def test_what_was_cut_teaches_only_that_it_takes_long() -> None:
    made = queue(2, held_s=0.5)
    busy(made)
    for held_s in (0.0, 5.0):
        for _ in range(200):
            one = ticket()
            made.take(one)
            made.finished(one, 0.0, -held_s, None, cut=True)
        expected_s = max(held_s, 0.5) / 2
        assert made.wait_s(ticket(), 0.0) == pytest.approx(expected_s)


def test_another_order_is_taken_over_for_those_that_wait() -> None:
    made = queue(1)
    busy(made)
    long = ticket(within=5.0, length=500.0)
    short = ticket(within=9.0, length=5.0)
    for one in (long, short):
        made._waiting.push(one, one.deadline)
    made.reorder("shortest", 30.0)
    made.set_share(2, 2)
    assert made.ready(0.0) == [short]
    made.reorder("deadline", 2.0)
    made.set_share(3, 3)
    assert made.ready(0.0) == [long]
