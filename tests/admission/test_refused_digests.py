from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.refused_digests import (
    MAX_DIGESTS,
    REFUSED_FOR_S,
    RefusedDigests,
    digest_of,
)
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


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 400)), max_size=30))
def test_a_digest_is_refused_for_ten_minutes_from_its_first_sighting(
    sightings: list[tuple[int, float]],
) -> None:
    """However often two processes tell each other of it: else it would be refused for ever."""
    clock = [0.0]
    ours, theirs = RefusedDigests(lambda: clock[0]), RefusedDigests(lambda: clock[0] + 777.0)
    first: dict[str, float] = {}
    for number, later_s in sightings:
        clock[0] += later_s
        digest = str(number)
        if clock[0] - first.get(digest, -REFUSED_FOR_S) >= REFUSED_FOR_S:
            first[digest] = clock[0]
        ours.refuse(digest)
        theirs.merge(ours.ages_s())
        ours.merge(theirs.ages_s())
        for known, since in first.items():
            age_s = clock[0] - since
            if abs(age_s - REFUSED_FOR_S) > 1e-6:
                assert (known in ours) == (known in theirs) == (age_s < REFUSED_FOR_S)


def test_only_so_many_are_kept_the_newest_of_them() -> None:
    clock = [0.0]
    refused = RefusedDigests(lambda: clock[0])
    refused.merge({f"old-{number}": 5.0 for number in range(MAX_DIGESTS)})
    refused.refuse("new")
    assert len(refused.ages_s()) == MAX_DIGESTS
    assert "new" in refused.ages_s()
