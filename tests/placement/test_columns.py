import pytest

from placement import columns, dive
from placement.bounds import bound
from placement.families import instance
from placement.grouped import grouped
from placement.master import SolverFailed
from placement.packing import pack
from placement.valid import violations


def failing(*_: object) -> None:
    raise SolverFailed("gave up")


def test_duals_that_are_too_high_are_shrunk_until_they_prove_something() -> None:
    """Farley's bound: any duals give one, and it is not above the optimum."""
    problem = instance("half", 60, 8, 0)
    groups = grouped(problem, by_zone=False)
    pricer = columns.Pricer(groups.kinds, groups.types, up=False)
    optimum = len(pack(problem).used) * groups.kinds[0].price

    for duals in ([pricer.scale * 10**6] * len(groups.types), [7] * len(groups.types)):
        _, best = pricer.columns(duals, [0])
        assert 0 < pricer.bound(duals, best) <= optimum


def test_a_solver_that_gives_up_leaves_the_heuristics_and_the_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = instance("half", 61, 8, 0)
    with monkeypatch.context() as patched:
        patched.setattr(columns, "solve", failing)
        patched.setattr(dive, "solve", failing)
        columns._relaxation.cache_clear()
        packing, least = pack(problem), bound(problem)
    columns._relaxation.cache_clear()

    assert violations(problem, packing) == ()
    assert packing.unplaced == ()
    assert least.by["lp"] == 0
    assert least.price == least.by["sum"]
