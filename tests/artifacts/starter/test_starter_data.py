"""The sentences and passages that ship with the recipes."""

from collections import Counter
from typing import Any

from modelyard.artifacts.starter.classifier import INTENTS, split
from modelyard.artifacts.starter.recipe import read_data
from modelyard.artifacts.starter.reranker import SETS


def test_each_intent_has_fifty_sentences_and_none_is_written_twice() -> None:
    intents: dict[str, list[str]] = read_data(INTENTS)
    assert {len(texts) for texts in intents.values()} == {50}
    counts = Counter(text.lower().strip(" .?!") for texts in intents.values() for text in texts)
    assert [text for text, count in counts.items() if count > 1] == []


def test_a_fifth_of_each_intent_is_held_out() -> None:
    intents: dict[str, list[str]] = read_data(INTENTS)
    data = split(intents)
    held = Counter(label for label, out in zip(data.labels, data.held_out, strict=True) if out)
    assert held == dict.fromkeys(range(len(intents)), 10)
    assert len(data.texts) == 50 * len(intents)


def test_each_query_has_a_right_answer_and_distractors_that_share_words_with_it() -> None:
    sets: list[dict[str, Any]] = read_data(SETS)
    assert len(sets) >= 30
    sharing = 0
    for one in sets:
        grades = [passage["relevance"] for passage in one["passages"]]
        assert 5 <= len(grades) <= 8
        assert grades.count(2) == 1
        assert set(grades) == {0, 1, 2}
        query = set(one["query"].lower().split())
        sharing += any(
            query & set(passage["text"].lower().split())
            for passage in one["passages"]
            if passage["relevance"] == 0
        )
    assert sharing == len(sets)
