import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.bands import BANDS, rank
from modelyard.admission.ticket import Ticket
from modelyard.admission.waiting import WaitingRequests

numbers = itertools.count(1)


def ticket(
    band: str = "batch",
    tenant: str = "t",
    deadline: float = 100.0,
    length: float | None = None,
    arrived: float = 0.0,
    alias: str = "chat",
) -> Ticket:
    number = next(numbers)
    return Ticket(number, band, tenant, alias, 1.0, arrived, deadline, 7, length)


def pushed(waiting: WaitingRequests, *tickets: Ticket) -> None:
    for each in tickets:
        waiting.push(each, each.deadline)


def popped(waiting: WaitingRequests, now: float = 0.0) -> list[Ticket]:
    return [waiting.pop(now) for _ in range(waiting.requests)]


def test_higher_bands_start_first() -> None:
    waiting = WaitingRequests()
    pushed(waiting, *(ticket(band) for band in ("shadow", "batch", "interactive") * 3))
    assert [each.band for each in popped(waiting)] == [band for band in BANDS for _ in range(3)]


def test_inside_a_tenant_the_earliest_deadline_starts_first() -> None:
    waiting = WaitingRequests()
    pushed(waiting, ticket(deadline=30), ticket(deadline=10), ticket(deadline=20))
    assert [each.deadline for each in popped(waiting)] == [10, 20, 30]


def test_equal_deadlines_start_as_they_came() -> None:
    waiting, several = WaitingRequests(), [ticket() for _ in range(5)]
    pushed(waiting, *several)
    assert popped(waiting) == several


def test_as_an_option_the_shortest_starts_first_and_the_unknown_last() -> None:
    waiting = WaitingRequests("shortest")
    pushed(waiting, *(ticket(length=length) for length in (None, 30.0, 10.0, 20.0)))
    assert [each.length for each in popped(waiting)] == [10.0, 20.0, 30.0, None]


def test_one_that_waited_for_the_age_cap_starts_before_shorter_ones() -> None:
    waiting = WaitingRequests("shortest", age_cap_s=2.0)
    long_one = ticket(length=1000.0, arrived=0.0)
    pushed(waiting, long_one, *(ticket(length=1.0, arrived=1.0) for _ in range(3)))
    assert waiting.pop(1.9).length == 1.0
    assert waiting.pop(2.0) is long_one
    assert waiting.pop(2.1).length == 1.0


def test_nobody_to_pop_is_an_error() -> None:
    with pytest.raises(IndexError):
        WaitingRequests().pop(0.0)


def test_what_has_expired_leaves_and_the_next_expiry_is_known() -> None:
    waiting = WaitingRequests()
    early, late = ticket(deadline=5.0), ticket("interactive", deadline=9.0)
    pushed(waiting, late, early)
    assert waiting.next_expiry == 5.0
    assert waiting.expired(4.9) == []
    assert waiting.expired(5.0) == [early]
    assert waiting.next_expiry == 9.0
    assert waiting.expired(100.0) == [late]
    assert waiting.next_expiry is None


def test_ahead_of_one_are_the_higher_bands_and_its_part_of_its_own() -> None:
    waiting = WaitingRequests()
    pushed(waiting, *(ticket("interactive") for _ in range(3)))
    pushed(waiting, *(ticket(tenant="flood") for _ in range(50)))
    pushed(waiting, *(ticket("shadow") for _ in range(9)))
    assert waiting.ahead_of(ticket(tenant="light")) == 3 + 1
    assert waiting.ahead_of(ticket(tenant="flood")) == 3 + 50
    assert waiting.ahead_of(ticket("interactive", tenant="x")) == 1


def test_the_counts_are_by_band_and_by_alias() -> None:
    waiting = WaitingRequests()
    mine = ticket("batch", alias="mine")
    pushed(waiting, ticket("interactive"), mine, ticket("shadow", alias="mine"))
    assert waiting.by_band == {"interactive": 1, "batch": 1, "shadow": 1}
    assert waiting.of_alias("mine") == (2, 14)
    assert waiting.of_alias("nothing") == (0, 0)
    assert [waiting.through(band) for band in range(3)] == [1, 2, 3]
    assert waiting.remove(mine) == 100.0
    assert waiting.remove(mine) is None
    assert waiting.of_alias("mine") == (1, 7)


def test_a_hundred_thousand_tenants_that_asked_once_leave_nothing() -> None:
    waiting = WaitingRequests("shortest")
    for i in range(100_000):
        one = ticket(tenant=f"t{i}", alias=f"a{i % 100}")
        waiting.push(one, 10.0)
        if i % 3 == 0:
            waiting.remove(one)
        elif i % 3 == 1:
            waiting.pop(0.0)
        else:
            waiting.expired(20.0)
    assert waiting.requests == 0
    assert not any((waiting._entries, waiting._expiries, waiting._aliases, waiting._by_age))


moves = st.lists(
    st.tuples(
        st.sampled_from(["push", "push", "push", "pop", "remove", "expire"]),
        st.sampled_from(BANDS),
        st.integers(0, 3),
        st.integers(0, 30),
    ),
    max_size=80,
)


@given(moves, st.sampled_from(["deadline", "shortest"]))
def test_whatever_happens_the_counts_are_those_of_what_is_in_it(
    sequence: list[tuple[str, str, int, int]], order: str
) -> None:
    waiting = WaitingRequests("shortest" if order == "shortest" else "deadline", age_cap_s=5.0)
    held: dict[int, Ticket] = {}
    for now, (move, band, tenant, number) in enumerate(sequence):
        if move == "push":
            one = ticket(
                band, f"t{tenant}", float(number), number % 4, float(now), f"a{tenant % 2}"
            )
            held[one.id] = one
            waiting.push(one, one.deadline)
        elif move == "pop" and held:
            one = waiting.pop(float(now))
            assert rank(one.band) == min(rank(each.band) for each in held.values())
            del held[one.id]
        elif move == "remove" and held:
            one = held.pop(list(held)[number % len(held)])
            assert waiting.remove(one) == one.deadline
        elif move == "expire":
            gone = waiting.expired(float(number))
            assert {each.id for each in gone} == {
                i for i, e in held.items() if e.deadline <= number
            }
            for each in gone:
                del held[each.id]
        _agree(waiting, list(held.values()))


def _agree(waiting: WaitingRequests, held: list[Ticket]) -> None:
    assert waiting.requests == len(held)
    assert waiting.by_band == {band: sum(e.band == band for e in held) for band in BANDS}
    for alias in ("a0", "a1"):
        of_it = sum(e.alias == alias for e in held)
        assert waiting.of_alias(alias) == (of_it, 7 * of_it)
    assert waiting.next_expiry == min((e.deadline for e in held), default=None)
    assert all(0 <= waiting.ahead_of(each) <= len(held) - 1 for each in held)
