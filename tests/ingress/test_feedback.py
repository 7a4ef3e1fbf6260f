"""POST /v1/feedback: a user's word on an answer."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.config.rollout import Rollout
from modelyard.config.table import Table, parse_table
from modelyard.contract.answer_id import PREFIXES, AnswerId, mint
from modelyard.contract.envelope import Item, Usage
from modelyard.control.published import Published
from modelyard.control.usage import UsageLedger
from modelyard.ingress import feedback_rate
from modelyard.ingress.feedback import LATE_S, Feedback, why_not
from modelyard.ingress.outcomes import MAX_WORDS
from modelyard.ingress.usage import count
from modelyard.rollout.outcome import Judgement, OutcomeBatch
from modelyard.routing.steering import Steering
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    BETA_KEY,
    EVALUATOR_KEY,
    OPS_KEY,
    SECRET,
    InMemoryIngress,
    bearer,
    post,
    table_record,
)

PLAN = {"id": "r-1", "gates": {"quality": {"bad_labels": ["wrong", "rude"]}}}
SPLIT = {"stable": "gen@1.0.0", "canary": "gen@2.0.0", "rollout": PLAN}
TABLE: Table = parse_table(table_record(routes=table_record()["routes"] | {"chat": SPLIT}))
RUNNING = Published(1, 1, (("r-1", 100.0),))
ANSWER = AnswerId("gen@2.0.0", "canary", "r-1", int(time.time()), b"nonce!", "0123456789ab")


def ingress_of(word: Published | None = RUNNING, *scripts: list[Any]) -> InMemoryIngress:
    ingress = InMemoryIngress(*scripts, table=TABLE)
    ingress.fleet.update([post("gen@1.0.0"), post("gen@2.0.0")])
    ingress.pipeline.obey(word)
    return ingress


def id_of(answer: AnswerId = ANSWER, tenant: str = "alpha", **changes: Any) -> str:
    return mint(replace(answer, **changes), tenant, SECRET)


async def sent(
    ingress: InMemoryIngress, body: dict[str, Any], key: str | None = ALPHA_KEY
) -> httpx.Response:
    return await posted(ingress, "/v1/feedback", body, key)


async def posted(
    ingress: InMemoryIngress, path: str, body: dict[str, Any], key: str | None = ALPHA_KEY
) -> httpx.Response:
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        return await http.post(path, json=body, headers=bearer(key) if key else {})


def judged(ingress: InMemoryIngress) -> list[Judgement]:
    batches: tuple[OutcomeBatch, ...] = ingress.pipeline.outcomes.batches(
        ingress.pipeline.now() + 60
    )
    return [one for batch in batches for one in batch.judgements]


async def test_the_id_of_an_answer_carries_a_word_to_the_arm_that_gave_it() -> None:
    ingress = ingress_of(RUNNING, [Item(b"{}", 0, Usage(1, 1))])
    body = {"model": "chat", "messages": [{"role": "user", "content": "hi"}]}
    await posted(ingress, "/v1/chat/completions", body)
    answered = ingress.records[-1]
    given_ = await sent(ingress, {"id": answered.answer_id, "thumbs": "up"})
    assert (given_.status_code, given_.json()) == (200, {"counted": True})
    (one,) = judged(ingress)
    assert (one.rollout, one.arm, one.good, one.source) == ("r-1", "canary", True, "feedback")
    assert one.conversation == answered.conversation[:12]
    assert one.conversation


@pytest.mark.parametrize("prefix", ["", *PREFIXES])
@pytest.mark.parametrize(
    ("word", "good"),
    [
        ({"score": 0.5}, True),
        ({"score": 1}, True),
        ({"score": 0.49}, False),
        ({"score": 0}, False),
        ({"thumbs": "up"}, True),
        ({"thumbs": "down"}, False),
        ({"label": "helpful"}, True),
        ({"label": "wrong"}, False),
        ({"thumbs": "up", "score": None}, True),
    ],
)
async def test_a_word_is_good_or_bad(prefix: str, word: dict[str, Any], good: bool) -> None:
    ingress = ingress_of()
    response = await sent(ingress, {"id": prefix + id_of()} | word)
    assert response.json() == {"counted": True}
    assert judged(ingress) == [
        Judgement("r-1", "canary", b"nonce!".hex(), "0123456789ab", good, "feedback")
    ]


async def test_a_second_word_on_one_answer_is_the_same_vote() -> None:
    ingress = ingress_of()
    for thumbs in ("up", "up", "down"):
        response = await sent(ingress, {"id": id_of(), "thumbs": thumbs})
        assert response.json() == {"counted": True}
    (one,) = judged(ingress)
    assert not one.good
    await sent(ingress, {"id": id_of(), "thumbs": "up"})
    # Control takes a unit once, whichever batch brings it.
    assert {one.unit for one in judged(ingress)} == {b"nonce!".hex()}


@pytest.mark.parametrize(
    "text",
    [
        id_of(tenant="beta"),
        mint(ANSWER, "alpha", b"another secret, of 32 bytes or so"),
        id_of()[:-4],
        "chatcmpl-123",
        "é",
    ],
)
async def test_an_id_of_others_and_a_forged_one_are_the_same_404(text: str) -> None:
    ingress = ingress_of()
    response = await sent(ingress, {"id": text, "thumbs": "up"})
    assert response.status_code == 404
    error = response.json()["error"]
    assert (error["modelyard_code"], error["param"]) == ("not_found", "id")
    assert judged(ingress) == []


@pytest.mark.parametrize(
    ("changes", "word", "why"),
    [
        ({"rollout": ""}, RUNNING, "belongs to no rollout"),
        ({"time_s": int(time.time()) - LATE_S - 1}, RUNNING, "older than seven days"),
        ({"rollout": "r-0"}, RUNNING, "rollout is over"),
        ({}, replace(RUNNING, finished=frozenset({"r-1"})), "rollout is over"),
    ],
)
async def test_what_comes_too_late_is_told_so_and_not_counted(
    changes: dict[str, Any], word: Published, why: str
) -> None:
    ingress = ingress_of(word)
    response = await sent(ingress, {"id": id_of(**changes), "thumbs": "up"})
    assert response.status_code == 200
    told = response.json()
    assert told["counted"] is False
    assert why in told["why"]
    assert judged(ingress) == []


@pytest.mark.parametrize(
    "word",
    [
        {},
        {"thumbs": "up", "score": 1},
        {"thumbs": "sideways"},
        {"score": 1.01},
        {"score": -0.1},
        {"score": True},
        {"score": "1"},
        {"label": "two words"},
        {"label": "x" * 33},
        {"label": ""},
        {"thumbs": "up", "id": None},
        {"thumbs": "up", "id": 7},
        {"thumbs": "up", "id": ""},
        {"thumbs": "up", "id": "x" * 2000},
    ],
)
async def test_any_other_body_is_400(word: dict[str, Any]) -> None:
    ingress = ingress_of()
    response = await sent(ingress, {"id": id_of()} | word)
    assert response.status_code == 400
    assert judged(ingress) == []


@pytest.mark.parametrize(
    ("key", "status"), [(None, 401), ("my_a-1_" + "x" * 30, 401), (OPS_KEY, 403)]
)
async def test_only_who_may_call_models_may_have_a_word(key: str | None, status: int) -> None:
    assert (await sent(ingress_of(), {"id": id_of(), "thumbs": "up"}, key)).status_code == status


async def test_an_evaluators_answer_is_of_no_rollout() -> None:
    ingress = ingress_of(RUNNING, [Item(b"{}", 0, Usage(1, 1))])
    tenants = TABLE.tenants | {"beta": TABLE.tenants["alpha"]}
    ingress.pipeline.adopt(TABLE.model_copy(update={"tenants": tenants}))
    body = {"model": "gen@2.0.0", "messages": [{"role": "user", "content": "hi"}]}
    answer = await posted(ingress, "/v1/chat/completions", body, EVALUATOR_KEY)
    assert answer.status_code == 200
    word = {"id": ingress.records[-1].answer_id, "thumbs": "up"}
    assert (await sent(ingress, word, EVALUATOR_KEY)).json()["counted"] is False


async def test_a_comment_is_read_by_nobody_and_logged_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ingress = ingress_of()
    caplog.set_level("DEBUG")
    word = {"id": id_of(), "label": "wrong", "comment": "a very private word"}
    response = await sent(ingress, word)
    assert response.headers["x-ignored-fields"] == "comment"
    (line,) = ingress.records
    told = json.loads(line.line())
    assert (told["purpose"], told["route"], told["status"]) == ("feedback", "/v1/feedback", 200)
    assert (told["tenant"], told["arm"], told["rollout"]) == ("alpha", "canary", "r-1")
    assert "private" not in line.line() + caplog.text
    assert "wrong" not in line.line()


@pytest.mark.parametrize("thumbs", ["up", "sideways"])
async def test_it_is_no_usage_no_outcome_and_costs_no_quota(thumbs: str) -> None:
    ingress, ledger = ingress_of(), UsageLedger()
    await sent(ingress, {"id": id_of(), "thumbs": thumbs})
    for record in ingress.records:
        count(ledger, record)
        ingress.pipeline.outcomes.add(record)
    assert ledger.report("") == ()
    batches = ingress.pipeline.outcomes.batches(ingress.pipeline.now() + 60)
    assert [one for batch in batches for one in batch.outcomes] == []
    assert ingress.records[0].reserved_tokens is None
    assert ingress.pipeline.demand.in_flight == ()


async def test_too_much_at_once_is_said_and_not_lost_silently() -> None:
    ingress = ingress_of()
    for n in range(MAX_WORDS):
        unit = n.to_bytes(6, "big").hex()
        ingress.pipeline.outcomes.judge(Judgement("r-1", "stable", unit, "", True, "feedback"))
    told = (await sent(ingress, {"id": id_of(), "thumbs": "up"})).json()
    assert told["counted"] is False
    assert "again" in told["why"]


async def test_a_tenant_that_floods_is_told_to_wait_and_takes_nobodys_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feedback_rate, "PER_MINUTE", 2)
    ingress = ingress_of()
    for _ in range(2):
        assert (await sent(ingress, {"id": id_of(), "thumbs": "up"})).status_code == 200
    refused = await sent(ingress, {"id": id_of(), "thumbs": "up"})
    assert refused.status_code == 429
    error = refused.json()["error"]
    assert (error["modelyard_code"], error["reason"]) == ("rate_limited", "feedback_rate")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    other = await sent(ingress, {"id": id_of(tenant="beta"), "thumbs": "up"}, BETA_KEY)
    assert other.status_code == 200


async def test_a_bug_is_logged_and_leaks_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingress = ingress_of()

    def fail(_: object) -> bool:
        raise ValueError("a secret")

    monkeypatch.setattr(ingress.pipeline.outcomes, "judge", fail)
    response = await sent(ingress, {"id": id_of(), "thumbs": "up"})
    assert response.status_code == 500
    assert "a secret" not in response.text
    assert "a secret" in caplog.text
    assert ingress.records[-1].status == 500


async def test_before_any_table_it_is_503() -> None:
    ingress = InMemoryIngress()
    ingress.pipeline.table = None
    assert (await sent(ingress, {"id": id_of(), "thumbs": "up"})).status_code == 503


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(["id", "score", "thumbs", "label", "other"]),
        st.none() | st.text(max_size=5) | st.floats() | st.booleans() | st.lists(st.none()),
    )
)
def test_a_word_that_is_taken_says_one_thing(record: dict[str, Any]) -> None:
    try:
        word = Feedback.model_validate(record)
    except ValueError:
        return
    assert len([one for one in (word.score, word.thumbs, word.label) if one is not None]) == 1
    assert word.is_good(Rollout.model_validate(PLAN)) in (True, False)


@given(st.integers(0, 3 * LATE_S))
def test_only_what_is_young_enough_counts(age_s: int) -> None:
    why = why_not(replace(ANSWER, time_s=10), TABLE, Steering({"r-1": 5.0}), 10.0 + age_s)
    assert why == ("late" if age_s > LATE_S else "")
