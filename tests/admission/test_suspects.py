from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.suspects import CROWD, KEPT_S, MAX_DEATHS, Suspects, digest_of
from modelyard.contract.envelope import Envelope

ENVELOPE = Envelope(
    claim="c",
    version="gen@1.0.0",
    operation="chat",
    body=b"{}",
    stream=False,
    budget_ms=1000,
    band="interactive",
    request_id="r-1",
    answer_id="a-1",
    model_alias="chat",
)


def test_a_digest_knows_a_question_and_not_who_carries_it() -> None:
    again = replace(ENVELOPE, request_id="r-2", answer_id="a-2", budget_ms=5, attempt=2, claim="d")
    assert digest_of(ENVELOPE, "alpha") == digest_of(again, "alpha")
    others = (
        digest_of(ENVELOPE, "beta"),
        digest_of(replace(ENVELOPE, body=b"[]"), "alpha"),
        digest_of(replace(ENVELOPE, version="gen@1.1.0"), "alpha"),
        digest_of(replace(ENVELOPE, operation="completions"), "alpha"),
    )
    assert len({digest_of(ENVELOPE, "alpha"), *others}) == 5


def test_many_requests_in_one_death_are_one_death() -> None:
    suspects = Suspects(lambda: 0.0)
    for _ in range(CROWD):
        suspects.died("a", "popular")
    assert not suspects.refuses("popular")
    suspects.died("b", "popular")
    assert suspects.refuses("popular")


def test_a_popular_text_that_is_all_the_traffic_needs_a_third_death() -> None:
    suspects = Suspects(lambda: 0.0)
    for replica in ("a", "b"):
        for _ in range(CROWD + 1):
            suspects.died(replica, "popular")
    assert not suspects.refuses("popular")
    suspects.died("c", "popular")
    assert suspects.refuses("popular")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 400)), max_size=25))
def test_a_death_counts_for_ten_minutes_from_its_first_sighting(
    seen: list[tuple[str, float]],
) -> None:
    """However often two processes tell each other of it: else it would count for ever."""
    clock = [0.0]
    ours, theirs = Suspects(lambda: clock[0]), Suspects(lambda: clock[0] + 777.0)
    first: dict[str, float] = {}
    for replica, later_s in seen:
        clock[0] += later_s
        if clock[0] - first.get(replica, -KEPT_S) >= KEPT_S:
            first[replica] = clock[0]
        ours.died(replica, "digest")
        theirs.merge(ours.deaths())
        ours.merge(theirs.deaths())
        ages = [clock[0] - since for since in first.values()]
        if all(abs(age_s - KEPT_S) > 1e-6 for age_s in ages):
            alive = {name for name, since in first.items() if clock[0] - since < KEPT_S}
            assert ours.deaths().keys() == theirs.deaths().keys() == alive
    if len(first) == 3 and max(clock[0] - since for since in first.values()) < KEPT_S - 1:
        assert ours.refuses("digest")


def test_only_so_many_deaths_are_kept_the_newest_of_them() -> None:
    clock = [0.0]
    suspects = Suspects(lambda: clock[0])
    for number in range(MAX_DEATHS + 1):
        clock[0] += 1.0
        suspects.died(f"r-{number}", "digest")
    assert suspects.deaths().keys() == {f"r-{number}" for number in range(1, MAX_DEATHS + 1)}
