"""Golden sets: what a line may be, and what makes an answer good."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.contract.errors import ConfigError
from modelyard.rollout.golden_item import Expectation, GoldenItem
from modelyard.rollout.golden_set import MAX_ITEMS, parse_golden_set
from modelyard.rollout.replayed import Replayed, judgements


def item(**changes: Any) -> GoldenItem:
    return GoldenItem.model_validate({"prompt": "2 + 2 =", "expect": {"contains": "4"}} | changes)


def faults(*lines: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_golden_set("\n".join(lines).encode(), "g.jsonl")
    return str(caught.value).splitlines()


ARMS = ("stable", "canary")
GOOD = '{"prompt": "2 + 2 =", "expect": {"contains": "4"}}'


def test_a_set_may_have_comments_and_empty_lines() -> None:
    [only] = parse_golden_set(f"# arithmetic\n\n{GOOD}\n".encode(), "g.jsonl")
    assert only == item()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "g.jsonl:2: no JSON ("),
        ("[]", "g.jsonl:2: must be a mapping"),
        ('{"prompt": "x"}', "g.jsonl:2: expect: "),
        ('{"prompt": 3, "expect": {"equals": "x"}}', "g.jsonl:2: prompt: must be text"),
        ('{"prompt": "x", "expect": {}}', "g.jsonl:2: expect: give one of contains, equals"),
        ('{"prompt": "x", "expect": {"equals": "a", "matches": "b"}}', "expect: give one of"),
        ('{"prompt": "x", "expect": {"matches": "("}}', "expect.matches: no regular expression"),
        ('{"prompt": "x", "expect": {"contain": "a"}}', "expect.contain: unknown key: did you"),
        ('{"expect": {"equals": "a"}}', "g.jsonl:2: give one of messages, prompt and input"),
        ('{"prompt": "x", "input": "y", "expect": {"equals": "a"}}', "give one of messages"),
        ('{"prompt": "x", "expect": {"equals": "a"}, "max_tokens": 0}', "max_tokens: "),
        (GOOD, "g.jsonl:2: the same as line 1: drop one"),
    ],
)
def test_a_fault_names_its_file_line_and_field(line: str, fault: str) -> None:
    [told] = faults(GOOD, line)
    assert fault in told
    assert told.startswith("g.jsonl:2: ")


def test_all_faults_are_told_at_once_but_no_more_than_one_can_read() -> None:
    assert len(faults("{", GOOD, "[]")) == 2
    assert len(faults(*["{"] * 100)) == 20


def test_no_item_and_too_many_are_faults() -> None:
    assert faults("# nothing") == ["g.jsonl: holds no item: write one JSON object a line"]
    lines = (
        json.dumps({"prompt": str(number), "expect": {"equals": "x"}})
        for number in range(MAX_ITEMS + 1)
    )
    assert "at most 10000 are asked" in faults(*lines)[0]


@pytest.mark.parametrize(
    ("expect", "good", "bad"),
    [
        ({"contains": "30 days"}, "Within 30 days.", "Within 30 Days."),
        ({"contains": ["Paris", "France"]}, "Paris, France", "Paris"),
        ({"equals": "yes"}, " yes\n", "yes."),
        ({"matches": r"^\d+$"}, "42", "42 or so"),
        ({"matches": "b"}, "abc", "ac"),
    ],
)
def test_what_makes_an_answer_good(expect: dict[str, Any], good: str, bad: str) -> None:
    expectation = Expectation.model_validate(expect)
    assert expectation.holds(good)
    assert not expectation.holds(bad)
    assert str(expectation).startswith(next(iter(expect)))


def test_a_request_is_greedy_and_for_the_version_itself() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    chat = item(prompt=None, messages=messages, max_tokens=8)
    assert chat.call("m@1") == (
        "/v1/chat/completions",
        {"model": "m@1", "temperature": 0, "max_tokens": 8, "messages": messages},
    )
    assert chat.question == "Hello"
    body = {"model": "m@1", "temperature": 0, "prompt": "2 + 2 ="}
    assert item().call("m@1") == ("/v1/completions", body)
    label = item(prompt=None, input="where is it?")
    assert label.call("m@1") == ("/v1/classify", {"model": "m@1", "input": "where is it?"})


def test_the_text_of_an_answer() -> None:
    assert item().text_of({"choices": [{"text": " 4"}]}) == " 4"
    chat = item(prompt=None, messages=[{"role": "user", "content": "x"}])
    assert chat.text_of({"choices": [{"message": {"content": "4"}}]}) == "4"
    assert chat.text_of({"choices": [{"message": {"content": None}}]}) == ""
    label = item(prompt=None, input="x")
    assert label.text_of({"data": [{"label": "order"}]}) == "order"
    others: tuple[Any, ...] = ({}, {"choices": []}, [], None)
    for other in others:
        with pytest.raises((LookupError, TypeError, ValueError)):
            item().text_of(other)


def test_only_pairs_are_judged_and_each_side_has_a_unit() -> None:
    pair = Replayed(1, item(), " 4", " 5")
    half = Replayed(2, item(prompt="3 + 3 ="), " 6", None, "m@2 said 500")
    stable, canary = judgements([pair, half])
    assert pair.differs
    assert not half.differs
    assert (stable["good"], canary["good"]) == (True, False)
    assert stable["pair"] == canary["pair"] == pair.item.key
    assert {stable["unit"], canary["unit"]} == {
        f"{pair.item.key}:stable",
        f"{pair.item.key}:canary",
    }


def test_an_items_key_is_of_all_it_says() -> None:
    keys = {item().key, item(max_tokens=4).key, item(expect={"equals": "4"}).key}
    assert len(keys) == 3
    assert item().key == item().key


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=100, deadline=None)
def test_no_file_makes_it_raise_anything_else(data: bytes) -> None:
    with suppress(ConfigError):
        assert parse_golden_set(data, "g")
