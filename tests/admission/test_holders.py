from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.holders import Holders, Key
from modelyard.admission.ticket import Ticket

WEIGHTS = (0.5, 1.0, 4.0)


def key(number: int, tenant: str, deadline: float, weight: float = 1.0, tokens: int = 1) -> Key:
    ticket = Ticket(number, "batch", tenant, "chat", weight, 0.0, deadline, tokens)
    return (deadline, number, ticket)


def holding(*keys: Key) -> Holders:
    holders = Holders()
    for each in keys:
        holders.add(each)
    return holders


def naive_ahead(keys: list[Key], of: Key) -> float:
    """The wait estimate's sum, as it is written down."""
    ticket = of[2]
    own = sum(1 for each in keys if each[2].tenant == ticket.tenant and each < of)
    counts: dict[str, tuple[int, float]] = {}
    for each in keys:
        counts[each[2].tenant] = (counts.get(each[2].tenant, (0, 0.0))[0] + 1, each[2].weight)
    others = sum(
        min(count, (own + 1) * weight / ticket.weight)
        for tenant, (count, weight) in counts.items()
        if tenant != ticket.tenant
    )
    return others + own


steps = st.lists(
    st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 20)), min_size=1, max_size=60
)


@given(steps)
def test_what_is_ahead_and_who_holds_most_agree_with_the_plain_sums(
    moves: list[tuple[bool, int, int]],
) -> None:
    holders, held, number = Holders(), list[Key](), 0
    for leaves, tenant, deadline in moves:
        if leaves and held:
            holders.remove(held.pop(deadline % len(held)))
        else:
            number += 1
            held.append(key(number, f"t{tenant}", deadline, WEIGHTS[tenant % 3], deadline))
            holders.add(held[-1])
        assert holders.requests == len(held)
        assert holders.tokens == sum(each[2].tokens for each in held)
        for each in held:
            assert abs(holders.ahead_of(each) - naive_ahead(held, each)) < 1e-9
        newcomer = key(number + 1, "t1", 7.0, WEIGHTS[1])
        assert abs(holders.ahead_of(newcomer) - naive_ahead(held, newcomer)) < 1e-9
        if held:
            last = holders.last("nobody")
            load = {
                tenant: sum(1 / k[2].weight for k in held if k[2].tenant == tenant)
                for tenant in {k[2].tenant for k in held}
            }
            assert abs(load[last.tenant] - max(load.values())) < 1e-9
            assert last.id == max(k for k in held if k[2].tenant == last.tenant)[1]


def test_among_equals_the_last_is_of_the_tenant_that_asks() -> None:
    holders = holding(*(key(i, f"t{i}", 1.0) for i in range(5)))
    assert [holders.last(f"t{i}").tenant for i in range(5)] == [f"t{i}" for i in range(5)]


def test_a_heavier_weight_may_hold_more() -> None:
    holders = holding(*(key(i, "paid", 1.0, 4.0) for i in range(3)), key(9, "free", 1.0))
    assert holders.last("paid").tenant == "free"


def test_a_tenant_whose_tier_changes_is_weighed_anew() -> None:
    holders = holding(
        *(key(i, "a", 1.0, 1.0) for i in range(3)), key(7, "b", 1.0), key(8, "b", 1.0)
    )
    assert holders.last("x").tenant == "a"
    late = key(9, "a", 1.0, 4.0)
    holders.add(late)
    assert holders.last("x").tenant == "b"
    holders.remove(late)
    assert holders.last("x").tenant == "b"


def test_nothing_is_kept_of_tenants_that_have_left() -> None:
    holders = Holders()
    for i in range(1000):
        one = key(i, f"t{i}", float(i), 1.0 + i / 7)
        holders.add(one)
        holders.remove(one)
    assert not holders.lines
    assert not holders._classes
