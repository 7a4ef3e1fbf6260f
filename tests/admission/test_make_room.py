import itertools

import pytest

from modelyard.admission.make_room import make_room
from modelyard.admission.ticket import Ticket
from modelyard.admission.waiting import WaitingRequests

numbers = itertools.count(1)


def ticket(
    tenant: str = "t",
    band: str = "batch",
    *,
    weight: float = 1.0,
    deadline: float = 10.0,
    tokens: int = 1,
    alias: str = "chat",
) -> Ticket:
    return Ticket(next(numbers), band, tenant, alias, weight, 0.0, deadline, tokens)


def full(*tickets: Ticket) -> WaitingRequests:
    waiting = WaitingRequests()
    for each in tickets:
        waiting.push(each, each.deadline)
    return waiting


def is_in(waiting: WaitingRequests, one: Ticket) -> bool:
    expires = waiting.remove(one)
    if expires is not None:
        waiting.push(one, expires)
    return expires is not None


def comes(
    waiting: WaitingRequests,
    one: Ticket,
    bound: int = 1000,
    max_requests: int | None = None,
    max_tokens: int | None = None,
) -> tuple[Ticket, ...] | None:
    waiting.push(one, one.deadline)
    before = waiting.requests
    leaving = make_room(waiting, one, lambda _: bound, max_requests, max_tokens)
    assert waiting.requests == before - (1 if leaving is None else len(leaving))
    assert is_in(waiting, one) is (leaving is not None)
    return leaving


def test_where_there_is_room_nobody_leaves() -> None:
    assert comes(full(ticket(), ticket()), ticket(), bound=3) == ()


def test_the_newest_of_the_lowest_band_leaves_for_a_higher_one() -> None:
    several = [ticket(band=band) for band in ("shadow", "shadow", "batch", "interactive")]
    assert comes(full(*several), ticket(band="interactive"), bound=4) == (several[1],)


def test_a_higher_band_never_leaves_for_a_lower_one() -> None:
    assert comes(full(*(ticket(band="interactive") for _ in range(4))), ticket(), bound=4) is None


def test_a_tenant_alone_is_refused_when_its_queue_is_full() -> None:
    assert comes(full(*(ticket() for _ in range(4))), ticket(), bound=4) is None


def test_a_flood_makes_room_for_the_first_request_of_another() -> None:
    flood = [ticket("flood") for _ in range(4)]
    assert comes(full(*flood), ticket("light"), bound=4) == (flood[-1],)


def test_one_that_holds_as_much_as_the_fullest_makes_nobody_leave() -> None:
    waiting = full(ticket("a"), ticket("a"), ticket("b"))
    assert comes(waiting, ticket("b"), bound=3) is None


def test_a_paying_tenant_may_hold_more() -> None:
    free = [ticket("free") for _ in range(2)]
    waiting = full(*free, *(ticket("paid", weight=4.0) for _ in range(6)))
    assert comes(waiting, ticket("paid", weight=4.0), bound=8) == (free[-1],)


def test_what_can_wait_long_need_not_leave_for_one_in_a_hurry() -> None:
    patient = [ticket("batches", deadline=600.0) for _ in range(50)]
    waiting, hasty = full(*patient), ticket("chat", "interactive", deadline=2.0)
    waiting.push(hasty, 2.0)
    assert make_room(waiting, hasty, lambda each: round(each.deadline), None, None) == ()


def test_a_limit_of_a_route_concerns_that_route_alone() -> None:
    others = [ticket("o", alias="other") for _ in range(5)]
    mine = [ticket("a"), ticket("a"), ticket("b")]
    assert comes(full(*others, *mine), ticket("c"), max_requests=3) == (mine[1],)
    assert comes(full(*others, *mine), ticket("a"), max_requests=3) is None


def test_a_high_request_pushes_a_low_one_off_its_full_route() -> None:
    low = [ticket("x"), ticket("x")]
    assert comes(full(*low), ticket("x", "interactive"), max_requests=2) == (low[1],)


def test_a_route_that_may_have_nothing_waiting_refuses() -> None:
    assert comes(full(), ticket(), max_requests=0) is None


def test_tokens_are_freed_until_the_one_that_comes_fits() -> None:
    low = [ticket("x", tokens=30) for _ in range(3)]
    assert comes(full(*low), ticket("y", "interactive", tokens=50), max_tokens=100) == (
        low[2],
        low[1],
    )


def test_one_larger_than_the_routes_tokens_may_wait_alone() -> None:
    assert comes(full(), ticket(tokens=500), max_tokens=100) == ()
    assert comes(full(ticket(tokens=10)), ticket(tokens=500), max_tokens=100) is None


def test_a_bound_that_fell_empties_no_queue() -> None:
    waiting = full(*(ticket("low") for _ in range(10)))
    leaving = comes(waiting, ticket("h", "interactive"), bound=2, max_requests=2)
    assert leaving is not None
    assert len(leaving) == 2  # one for the route's bound, one for the queue's


def test_tokens_that_fell_empty_no_queue_either() -> None:
    low = [ticket("x", tokens=30) for _ in range(4)]
    assert comes(full(*low), ticket("y", "interactive", tokens=30), max_tokens=40) == (low[3],)


@pytest.mark.parametrize("max_tokens", [60, 90])
def test_when_it_is_refused_everybody_else_is_still_there(max_tokens: int) -> None:
    several = [ticket(tenant, tokens=30) for tenant in ("a", "a", "b")]
    waiting = full(*several)
    assert comes(waiting, ticket("b", tokens=80), max_tokens=max_tokens) is None
    assert all(is_in(waiting, each) for each in several)
    assert waiting.of_alias("chat") == (3, 90)
