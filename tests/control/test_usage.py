"""Usage: totals that survive lost, late and repeated reports."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.control.usage import SETTLED_AFTER_S, Amounts, UsageBook, UsageKey, UsageLedger

KEY = UsageKey("2026-11-30", "alpha", "chat", "gen@1.0.0")
OLD = UsageKey("2026-11-28", "alpha", "chat", "gen@1.0.0")


def test_a_ledger_adds_up_and_forgets_old_days() -> None:
    ledger = UsageLedger()
    ledger.add(OLD, Amounts(1, 0, 1, 1))
    ledger.add(KEY, Amounts(1, 0, 7, 2, 3))
    ledger.add(KEY, Amounts(1, 1, 1, 0))
    assert ledger.report("2026-11-29") == ((KEY, Amounts(2, 1, 8, 2, 3)),)


def test_an_ingress_that_ended_still_counts_and_old_days_do_not() -> None:
    book = UsageBook()
    book.report("i-1", [(KEY, Amounts(2)), (OLD, Amounts(5))], 0.0)
    book.report("i-2", [(KEY, Amounts(3))], SETTLED_AFTER_S)
    book.tidy(SETTLED_AFTER_S, "2026-11-29")
    assert book.rows() == [(KEY, Amounts(5))]
    book.report("i-2", [(KEY, Amounts(4))], SETTLED_AFTER_S + 1)
    assert book.rows("alpha") == [(KEY, Amounts(6))]
    assert book.rows("beta") == []


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "send", "lose", "late", "restart"]), st.integers(0, 2)),
        max_size=40,
    )
)
def test_after_one_more_report_of_each_the_book_is_exact(steps: list[tuple[str, int]]) -> None:
    ledgers = [UsageLedger() for _ in range(3)]
    late: list[tuple[int, tuple[tuple[UsageKey, Amounts], ...]]] = []
    book, true = UsageBook(), 0
    for number, (step, which) in enumerate(steps):
        report = ledgers[which].report("2026-11-29")
        if step == "add":
            ledgers[which].add(KEY, Amounts(1, 0, number))
            true += number
        elif step == "send":
            book.report(f"i-{which}", report, 0.0)
        elif step == "lose":
            late.append((which, report))
        elif step == "late" and late:
            sender, old = late.pop(0)
            book.report(f"i-{sender}", old, 0.0)
        elif step == "restart":
            book = UsageBook.decode(book.encode(), 0.0)
    for which, ledger in enumerate(ledgers):
        book.report(f"i-{which}", ledger.report("2026-11-29"), 0.0)
    assert sum(amounts.input_tokens for _, amounts in book.rows()) == true
