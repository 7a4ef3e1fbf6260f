from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.fair_band import MAX_DEBTS, FairBand
from modelyard.admission.holders import Key
from modelyard.admission.ticket import Ticket


def key(number: int, tenant: str, weight: float = 1.0, tokens: int = 1) -> Key:
    return (100.0, number, Ticket(number, "batch", tenant, "chat", weight, 0.0, 100.0, tokens))


def serve(band: FairBand) -> str:
    first = band.next_line().keys[0]
    band.served(first)
    return first[2].tenant


def backlog(band: FairBand, tenant: str, count: int, weight: float = 1.0, first: int = 0) -> None:
    for i in range(count):
        band.push(key(first + i, tenant, weight))


@given(st.sampled_from([0.25, 1.0, 3.0, 4.0]), st.sampled_from([0.5, 1.0, 2.0, 7.0]))
def test_two_backlogged_tenants_get_slots_by_weight_within_one(left: float, right: float) -> None:
    band = FairBand()
    backlog(band, "left", 300, left)
    backlog(band, "right", 300, right, first=1000)
    served: Counter[str] = Counter()
    for _ in range(300):
        served[serve(band)] += 1
        assert served["left"] - served["right"] * left / right <= 1 + 1e-6
        assert served["right"] - served["left"] * right / left <= 1 + 1e-6


def test_a_flood_delays_a_newcomer_by_one_turn() -> None:
    band = FairBand()
    backlog(band, "flood", 100)
    for _ in range(10):
        serve(band)
    band.push(key(500, "new"))
    assert "new" in [serve(band), serve(band)]


def test_idleness_earns_no_credit() -> None:
    band = FairBand()
    backlog(band, "busy", 200)
    backlog(band, "idle", 1, first=900)
    for _ in range(100):
        serve(band)
    backlog(band, "idle", 50, first=1000)
    turns = [serve(band) for _ in range(40)]
    assert abs(turns.count("idle") - turns.count("busy")) <= 1
    assert "busy" in turns[:2]


def test_leaving_after_a_turn_and_coming_back_is_no_way_to_a_second_one() -> None:
    band = FairBand()
    backlog(band, "patient", 50)
    turns = []
    for i in range(40):
        if "hasty" not in band.held.lines:
            band.push(key(1000 + i, "hasty"))
        turns.append(serve(band))
    assert abs(turns.count("hasty") - turns.count("patient")) <= 1


def test_a_request_that_left_unserved_costs_nothing() -> None:
    band = FairBand()
    backlog(band, "a", 10)
    for i in range(20):
        band.push(key(100 + i, "b"))
        band.remove(key(100 + i, "b"))
    band.push(key(200, "b"))
    assert "b" in [serve(band), serve(band)]


def test_tokens_do_not_change_the_turns() -> None:
    band = FairBand()
    for i in range(10):
        band.push(key(i, "long", tokens=4000))
        band.push(key(100 + i, "short", tokens=10))
    assert Counter(serve(band) for _ in range(10)) == {"long": 5, "short": 5}


def test_an_empty_band_keeps_nothing_of_anybody() -> None:
    band = FairBand()
    for i in range(100):
        band.push(key(i, f"t{i}", 0.01))
    backlog(band, "more", 3, first=200)
    for _ in range(103):
        serve(band)
    assert not band._debts
    assert not band._due
    assert not band._turns
    assert band._virtual == 0.0


def test_a_hundred_thousand_strangers_leave_no_more_than_a_bounded_memory() -> None:
    band = FairBand()
    backlog(band, "flood", 5)
    for i in range(100_000):
        band.push(key(1000 + i, f"t{i}"))
        band.served(band.next_line().keys[0])
    assert band.held.requests == 5
    assert len(band._debts) == len(band._due) <= MAX_DEBTS


def test_debts_are_forgotten_once_the_others_have_caught_up() -> None:
    band = FairBand()
    backlog(band, "busy", 50)
    for i in range(10):
        band.push(key(100 + i, f"t{i}"))
    for _ in range(20):
        serve(band)
    assert not band._debts
    assert not band._due


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=120))
def test_whatever_comes_and_leaves_the_books_agree(moves: list[tuple[int, int]]) -> None:
    band, held = FairBand(), list[Key]()
    for number, (move, tenant) in enumerate(moves):
        if move <= 1 or not held:
            held.append(key(number, f"t{tenant}", 1.0 + tenant))
            band.push(held[-1])
        elif move == 2:
            band.remove(held.pop(tenant % len(held)))
        else:
            first = band.next_line().keys[0]
            band.served(first)
            held.remove(first)
        assert band.held.requests == len(held)
        assert {line.tenant for _, _, line in band._turns} == {each[2].tenant for each in held}
        assert sorted(band._debts.items()) == sorted((name, at) for at, name in band._due)
        assert all(at > band._virtual for at in band._debts.values())
        assert all(start >= band._virtual for start, _, _ in band._turns)
