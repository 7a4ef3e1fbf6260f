from __future__ import annotations

from modelyard.control.published import Override, Published
from modelyard.lifecycle.drain import DrainOrder, drain_order


def word(*overrides: Override) -> Published:
    return Published(1, 1, overrides=overrides)


def test_a_replica_reads_its_own_order_in_controls_word() -> None:
    mine = Override("drain", "replica:r1", None, "ops-1", "a slow disk", 60.0)
    of_an_app = Override("drain", "gen@1.0.0", None, "ops-1", "all of it", 60.0)
    order = drain_order(word(of_an_app, mine), "r1")
    assert order == DrainOrder("ops-1", "a slow disk")
    assert str(order) == "drained by ops-1: a slow disk"
    assert drain_order(word(of_an_app, mine), "r2") is None
    assert drain_order(None, "r1") is None
