from __future__ import annotations

import math
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission import predict
from modelyard.admission.predict import ENOUGH, LengthPredictor

names = st.sampled_from("abc")
answers = st.lists(
    st.tuples(names, names, st.integers(1, 4096), st.integers(0, 4096), st.integers(0, 4096)),
    max_size=200,
)


def test_it_knows_nothing_until_an_alias_has_enough_answers() -> None:
    lengths = LengthPredictor()
    for _ in range(ENOUGH - 1):
        lengths.learn("t", "chat", 256, 0, 50)
    assert lengths.predict("t", "chat", 256, 0) is None
    lengths.learn("t", "chat", 256, 0, 50)
    assert lengths.predict("t", "chat", 256, 0) is not None
    assert lengths.predict("t", "other", 256, 0) is None


def test_a_tenant_has_its_own_figure_and_a_new_one_the_aliases() -> None:
    lengths = LengthPredictor()
    for _ in range(ENOUGH):
        lengths.learn("short", "chat", 256, 0, 10)
        lengths.learn("long", "chat", 256, 0, 160)
    assert round(lengths.predict("short", "chat", 256, 0) or 0) == 10
    assert round(lengths.predict("long", "chat", 256, 0) or 0) == 160
    assert round(lengths.predict("new", "chat", 256, 0) or 0) == 40  # the geometric mean


def test_prompts_of_another_size_are_another_figure() -> None:
    lengths = LengthPredictor()
    for _ in range(ENOUGH):
        lengths.learn("t", "chat", 256, 100, 20)
        lengths.learn("t", "chat", 256, 1000, 200)
    assert round(lengths.predict("t", "chat", 256, 105) or 0) == 20
    assert round(lengths.predict("t", "chat", 256, 990) or 0) == 200


def test_it_follows_a_change() -> None:
    lengths = LengthPredictor()
    for _ in range(500):
        lengths.learn("t", "chat", 1024, 0, 20)
    for _ in range(100):
        lengths.learn("t", "chat", 1024, 0, 400)
    assert (lengths.predict("t", "chat", 1024, 0) or 0) > 390


def test_it_finds_the_mean_of_the_logs() -> None:
    lengths, rng = LengthPredictor(), Random(1)
    for _ in range(2000):
        lengths.learn("t", "chat", 4096, 0, round(rng.lognormvariate(math.log(100), 0.5)))
    assert 80 < (lengths.predict("t", "chat", 4096, 0) or 0) < 125


@given(answers)
def test_a_prediction_is_from_one_to_the_cap(
    learned: list[tuple[str, str, int, int, int]],
) -> None:
    lengths = LengthPredictor()
    for tenant, alias, cap, tokens, prompt in learned:
        lengths.learn(tenant, alias, cap, prompt, tokens)
        predicted = lengths.predict(tenant, alias, cap, prompt)
        assert predicted is None or 1 <= predicted <= cap


def test_memory_is_bounded_and_the_longest_unused_is_forgotten() -> None:
    lengths = LengthPredictor()
    for number in range(3 * predict.MAX_KEYS):
        lengths.learn(f"tenant-{number}", "chat", 256, 0, 5)
        if number % 100 == 0:
            lengths.learn("kept", "chat", 256, 0, 250)
    assert len(lengths._keys) == predict.MAX_KEYS
    assert (lengths.predict("kept", "chat", 256, 0) or 0) > 240
