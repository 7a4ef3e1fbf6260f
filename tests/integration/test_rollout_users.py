"""What users meet while a rollout goes on: copies, pins, feedback, a judge, a control that dies.

Times are of seconds and canaries cost nothing: it is the machinery that is looked at.
"""

from __future__ import annotations

import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
import pytest

from modelyard.config.demo import DEMO_KEY, OPS_KEY
from tests.integration.rollout_load import Asked, Load, classified, users
from tests.integration.rollout_operator import RolloutOperator
from tests.integration.rollout_users_books import (
    admitted,
    copies,
    copies_by_end,
    newest_process,
    used,
)
from tests.integration.rollout_users_canaries import (
    ASSISTANT,
    CANARY_OF,
    INTENT,
    STABLE_OF,
    Canaries,
)
from tests.integration.rollout_users_judge import JudgeServer
from tests.integration.rollout_users_turns import LATER, Chats

pytestmark = pytest.mark.integration

CANARY_TITLE: Final = f"ServeReplica:{CANARY_OF[INTENT]}:Classifier"
CONTROL_TITLE: Final = "ServeReplica:control:Control"
USERS: Final = 2
PAIRS: Final = 20
IN_A_ROW: Final = 12  # answers on connections of their own: both ingresses gave some
OTHER: Final = "capped"  # a tenant of the tests' configuration
REPORTS_S: Final = 3  # more than an ingress's two reports to control


@pytest.fixture(scope="module")
def operator(platform: Any) -> Iterator[RolloutOperator]:
    with RolloutOperator(platform) as made:
        yield made


@pytest.fixture(scope="module")
def canaries(
    operator: RolloutOperator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Canaries]:
    made = Canaries(operator, tmp_path_factory.mktemp("canaries"))
    yield made
    made.remove()


def all_whole(answers: list[Asked]) -> bool:
    bad = [one for one in answers if not one.whole]
    assert answers
    assert not bad, (len(bad), bad[:5])
    versions = {"stable": STABLE_OF[INTENT], "canary": CANARY_OF[INTENT]}
    assert all(one.version == versions[one.arm] for one in answers)
    return True


def arms(load: Load, at_s: float = 0.0) -> set[str]:
    return {one.arm for one in load.since(at_s)}


def figures(operator: RolloutOperator, rollout: str) -> dict[str, Any]:
    """The view's figures by arm; empty while control is away."""
    view = operator.view(rollout)
    return {} if view is None else {arm["arm"]: arm for arm in view["arms"]}


def samples(operator: RolloutOperator, rollout: str) -> int:
    view = operator.view(rollout)
    return 0 if view is None else int(view["samples"])


def seen_to_step(operator: RolloutOperator, rollout: str) -> tuple[dict[str, Any], float]:
    """The decision of the first step, and a moment before which it had not been taken."""
    asked_s = time.time()
    [step] = [one for one in operator.history(rollout) if one["what"] == "step"]
    return step, asked_s - float(step["at_s_ago"]) - 0.1  # it is rounded


# Shadow traffic


def test_copies_cost_users_nothing_and_lead_to_the_first_step(
    canaries: Canaries, operator: RolloutOperator, platform: Any, wait_for: Any
) -> None:
    rollout = canaries.deploy(INTENT, shadow_percent=100, shadow_min_pairs=PAIRS)
    usage, quota = used(platform, "demo", INTENT), admitted(platform)
    with users(platform, DEMO_KEY, USERS, classified) as load:
        assert operator.verb(rollout, "start")["phase"] == "Shadowing"
        operator.wait_until(rollout, "Holding")
    step, at_s = seen_to_step(operator, rollout)
    assert all_whole(load.answers)
    before = [one for one in load.answers if one.ended_s < at_s]
    assert {one.arm for one in before} == {"stable"}
    assert (step["author"], step["percent"]) == ("control", 50)
    shadow = {arm["arm"]: arm for arm in step["arms"]}["shadow"]
    assert shadow["compared"] >= PAIRS
    assert shadow["matches"] == shadow["compared"]

    lines = wait_for("the copies in the log", lambda: _answered(copies(platform, rollout)))
    assert {(one["arm"], one["version"]) for one in lines} == {("shadow", CANARY_OF[INTENT])}
    copied = {one["request_id"].removesuffix("-shadow") for one in lines}
    assert copied <= {one.request_id for one in load.answers}
    assert not [one for one in lines if "reserved_tokens" in one or "settled_tokens" in one]
    print(f"\n{len(before)} answers before the step, {len(lines)} copies answered: {shadow}")
    print(f"copies by what became of them: {dict(copies_by_end(platform))}")

    sent = Counter(one.version for one in load.answers)
    wait_for("the usage", lambda: used(platform, "demo", INTENT) - usage == sent)
    wait_for("the quota", lambda: admitted(platform) - quota >= sent.total())
    time.sleep(REPORTS_S)  # nor does more come later
    assert used(platform, "demo", INTENT) - usage == sent
    assert admitted(platform) - quota == sent.total()


def _answered(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Once there are as many as had to be compared."""
    answered = [one for one in lines if one["status"] == 200]
    return answered if len(answered) >= PAIRS else []


def test_a_canary_killed_while_it_gets_copies_fails_no_user(
    canaries: Canaries, operator: RolloutOperator, platform: Any, wait_for: Any
) -> None:
    rollout = canaries.deploy(
        INTENT,
        shadow_percent=100,
        shadow_min_pairs=100_000,
        limits={"errors_percent": 100},
        gates=dict.fromkeys(("errors", "ttft", "e2e", "tokens")),
    )
    with users(platform, DEMO_KEY, USERS, classified) as load:
        operator.verb(rollout, "start")
        wait_for("pairs", lambda: samples(operator, rollout) >= PAIRS)
        killed = newest_process(platform, CANARY_TITLE)
        assert killed is not None
        killed.send_signal(signal.SIGKILL)
        at_s = time.time()

        def replaced() -> Any:
            newest = newest_process(platform, CANARY_TITLE)
            return newest if newest is not None and newest.pid != killed.pid else None

        newest = wait_for("another replica", replaced)

        def copied_again() -> bool:
            later = {f"{one.request_id}-shadow" for one in load.since(newest.create_time())}
            lines = copies(platform, rollout)
            return any(one["request_id"] in later and one["status"] == 200 for one in lines)

        wait_for("copies at the new replica", copied_again)
        print(f"\ncopies again {time.time() - at_s:.1f} s after the kill")
        view = operator.view(rollout)
    assert all_whole(load.answers)
    assert arms(load) == {"stable"}
    assert load.since(at_s)
    assert view is not None
    assert (view["phase"], view["percent"]) == ("Shadowing", 0)
    ended = Counter(str(one["status"]) for one in copies(platform, rollout))
    print(f"{len(load.answers)} answers, copies sent by status: {dict(ended)}")
    print(f"copies of both tests by what became of them: {dict(copies_by_end(platform))}")


# Pins


def test_a_pin_keeps_a_conversation_on_its_version_until_that_is_rolled_back(
    canaries: Canaries, operator: RolloutOperator, platform: Any, wait_for: Any
) -> None:
    stable, canary = STABLE_OF[ASSISTANT], CANARY_OF[ASSISTANT]
    rollout = canaries.deploy(ASSISTANT, conversations="pin", steps_percent=[30, 100])
    operator.verb(rollout, "start")
    operator.wait_until(rollout, "Holding")
    chats = Chats(platform, DEMO_KEY)
    on = {arm: chats.drawn(arm) for arm in ("canary", "stable")}
    assert (on["stable"].version, on["canary"].version) == (stable, canary)
    assert all(one.pin for one in on.values())
    assert on["stable"].text.strip() != on["canary"].text.strip()

    def next_turn(arm: str) -> tuple[str, str]:
        """With the pin of the turn before; the new one is kept."""
        said = chats.say(LATER, on[arm].conversation, on[arm].pin)
        assert said.pin
        on[arm] = said
        return said.version, said.ignored

    assert (next_turn("stable"), next_turn("canary")) == ((stable, ""), (canary, ""))
    _weigh(platform, rollout, 100)
    at_s = time.time()
    wait_for("all first turns on the canary", lambda: _all(chats, "canary"))
    print(f"\n{IN_A_ROW} in a row on the canary {time.time() - at_s:.2f} s after the weight")
    for _ in range(3):
        assert (next_turn("stable"), next_turn("canary")) == ((stable, ""), (canary, ""))
    without = [chats.say(LATER, on["canary"].conversation) for _ in range(3)]
    assert {(one.version, one.ignored) for one in without} == {(stable, "")}

    operator.verb(rollout, "rollback")
    at_s = time.time()
    wait_for("the pin ignored", lambda: next_pinned(chats, on["canary"]) == "rolled_back")
    print(f"the pin ignored {time.time() - at_s:.2f} s after the rollback")
    wait_for("no first turn on the canary", lambda: _all(chats, "stable"))
    said = [chats.say(LATER, on["canary"].conversation, on["canary"].pin) for _ in range(3)]
    assert {(one.version, one.ignored) for one in said} == {(stable, "rolled_back")}
    assert next_turn("stable") == (stable, "")


def next_pinned(chats: Chats, said: Any) -> str:
    ignored: str = chats.say(LATER, said.conversation, said.pin).ignored
    return ignored


def _all(chats: Chats, arm: str) -> bool:
    return all(chats.say().arm == arm for _ in range(IN_A_ROW))


def _weigh(platform: Any, rollout: str, percent: float) -> None:
    with platform.client(OPS_KEY) as client:
        body = {"percent": percent, "reason": "a test"}
        client.post(f"/admin/rollouts/{rollout}/weight", json=body).raise_for_status()


def test_a_forged_pin_and_that_of_another_tenant_are_invalid(
    canaries: Canaries, operator: RolloutOperator, platform: Any, test_keys: dict[str, str]
) -> None:
    rollout = canaries.deploy(ASSISTANT, conversations="pin")
    operator.verb(rollout, "start")
    operator.wait_until(rollout, "Holding")
    mine, theirs = Chats(platform, DEMO_KEY), Chats(platform, test_keys[OTHER])
    said = mine.drawn("canary")
    place = len(said.pin) // 2
    forged = said.pin[:place] + ("A" if said.pin[place] != "A" else "B") + said.pin[place + 1 :]
    for chats, conversation, pin in (
        (mine, said.conversation, forged),
        (mine, f"c-{uuid.uuid4().hex}", said.pin),  # of another conversation
        (theirs, said.conversation, said.pin),
    ):
        later = chats.say(LATER, conversation, pin)
        assert (later.version, later.ignored) == (STABLE_OF[ASSISTANT], "invalid")
    assert mine.say(LATER, said.conversation, said.pin).arm == "canary"


# Feedback


class Voter:
    """Asks the classifier and says what it thinks of the answer."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def ask(self) -> tuple[str, str]:
        """An answer's id and arm."""
        headers = {"X-Conversation-Id": f"c-{uuid.uuid4().hex}"}
        body = {"model": INTENT, "input": ["where is my parcel?"]}
        answer = self._client.post("/v1/classify", json=body, headers=headers).raise_for_status()
        return str(answer.json()["id"]), str(answer.headers["x-rollout-arm"])

    def vote(self, answer_id: str, **word: Any) -> httpx.Response:
        return self._client.post("/v1/feedback", json={"id": answer_id} | word)


def votes(operator: RolloutOperator, rollout: str) -> dict[str, tuple[int, int]]:
    """Good and judged, by arm."""
    found = figures(operator, rollout).items()
    return {arm: (figure["good"], figure["judged"]) for arm, figure in found}


def test_feedback_counts_once_on_the_arm_that_answered(
    canaries: Canaries,
    operator: RolloutOperator,
    platform: Any,
    test_keys: dict[str, str],
    wait_for: Any,
) -> None:
    gates: dict[str, Any] = dict.fromkeys(("errors", "ttft", "e2e", "tokens"))
    gates["quality"] = {"bad_labels": ["escalated"]}
    rollout = canaries.deploy(INTENT, gates=gates)
    operator.verb(rollout, "start")
    operator.wait_until(rollout, "Holding")
    words: dict[str, dict[str, Any]] = {"stable": {"thumbs": "up"}, "canary": {"score": 0.2}}
    with platform.client(DEMO_KEY) as client, platform.client(test_keys[OTHER]) as other:
        voter = Voter(client)
        answers = [voter.ask() for _ in range(2 * IN_A_ROW)]
        count = Counter(arm for _, arm in answers)
        assert set(count) == {"stable", "canary"}
        for answer_id, arm in answers:
            assert voter.vote(answer_id, **words[arm]).json() == {"counted": True}
        at_s = time.time()
        expected = {"stable": (count["stable"], count["stable"]), "canary": (0, count["canary"])}
        wait_for("the votes", lambda: votes(operator, rollout) == expected)
        print(f"\n{len(answers)} votes in the view {time.time() - at_s:.2f} s later: {expected}")

        for answer_id, _ in answers:  # the same again, and the other way round
            again = voter.vote(answer_id, thumbs="up")
            assert (again.status_code, again.json()) == (200, {"counted": True})
        answer_id, arm = voter.ask()  # what comes later is counted, the same again was not
        voter.vote(answer_id, label="escalated").raise_for_status()
        good, judged = expected[arm]
        expected[arm] = (good, judged + 1)
        wait_for("one vote more", lambda: votes(operator, rollout) == expected)

        forged = ("A" if answer_id[0] != "A" else "B") + answer_id[1:]
        for refused in (
            voter.vote(forged, thumbs="up"),
            Voter(other).vote(answer_id, thumbs="up"),
        ):
            assert refused.status_code == 404
            error = refused.json()["error"]
            assert (error["modelyard_code"], error["param"]) == ("not_found", "id")
        time.sleep(REPORTS_S)
        assert votes(operator, rollout) == expected

        operator.verb(rollout, "rollback")

        def late() -> Any:
            answer = voter.vote(answer_id, thumbs="down").raise_for_status().json()
            return None if answer["counted"] else answer

        told = wait_for("feedback that comes too late", late)
        assert told == {"counted": False, "why": "its rollout is over"}
        assert votes(operator, rollout)[arm][1] >= expected[arm][1]


# A judge


def test_a_judge_reads_what_agreed_tenants_got_and_is_not_told_the_arm(
    canaries: Canaries,
    operator: RolloutOperator,
    platform: Any,
    test_keys: dict[str, str],
    wait_for: Any,
) -> None:
    with JudgeServer(lambda answer: " word" not in answer) as judge:
        rollout = canaries.deploy(
            ASSISTANT,
            judged=["demo"],
            judge={"url": judge.url, "sample_percent": 100, "rubric": "It is polite."},
            gates=dict.fromkeys(("errors", "ttft", "e2e", "tokens")) | {"quality": {}},
        )
        operator.verb(rollout, "start")
        operator.wait_until(rollout, "Holding")
        agreed, other = Chats(platform, DEMO_KEY), Chats(platform, test_keys[OTHER])
        wait_for("a first verdict", lambda: agreed.say() and judge.questions)
        said = [agreed.say(_asks(f"agreed-{number}")) for number in range(IN_A_ROW)]
        unseen = [other.say(_asks(f"secret-{number}")) for number in range(IN_A_ROW)]
        said += [agreed.say(_asks(f"agreed-{number}")) for number in range(IN_A_ROW)]
        assert {one.arm for one in said} == {"stable", "canary"}
        assert {one.arm for one in unseen} == {"stable", "canary"}
        count = Counter(one.arm for one in said)

        def judged() -> Any:
            found = votes(operator, rollout)
            all_in = sum(one for _, one in found.values()) == len(judge.questions)
            return found if all_in and _questions(judge, "agreed-") >= len(said) else None

        at_s = time.time()
        found = wait_for("the verdicts", judged)
        print(f"\n{len(judge.questions)} verdicts in the view {time.time() - at_s:.2f} s later")
        time.sleep(REPORTS_S)
        questions = list(judge.questions)
    print(f"votes: {found}")
    assert _questions(judge, "agreed-") == len(said)
    assert _questions(judge, "secret-") == 0
    assert found["stable"][0] == found["stable"][1] >= count["stable"]
    assert found["canary"][0] == 0
    assert found["canary"][1] >= count["canary"]
    for question in questions:
        assert set(question.body) == {"messages", "answer", "rubric"}
        assert question.body["rubric"] == "It is polite."
        names = {*STABLE_OF.values(), *CANARY_OF.values(), "stable", "canary", rollout, DEMO_KEY}
        assert not [name for name in names if name in question.text], question


def _asks(word: str) -> tuple[dict[str, str], ...]:
    return ({"role": "user", "content": f"Say {word}."},)


def _questions(judge: JudgeServer, word: str) -> int:
    return sum(word in one.text for one in judge.questions)


# Control


def test_a_step_goes_on_under_the_successor_of_a_killed_control(
    canaries: Canaries, operator: RolloutOperator, platform: Any, wait_for: Any
) -> None:
    plan: dict[str, Any] = {"steps_percent": [30, 100]}
    rollout = canaries.deploy(INTENT, **plan)
    with users(platform, DEMO_KEY, USERS, classified) as load:
        operator.verb(rollout, "start")
        operator.wait_until(rollout, "Holding")
        wait_for("evidence", lambda: samples(operator, rollout) >= PAIRS)
        before, decided, epoch = operator.view(rollout), operator.history(rollout), _epoch(platform)
        assert before is not None
        killed = newest_process(platform, CONTROL_TITLE)
        assert killed is not None
        killed.send_signal(signal.SIGKILL)
        killed.wait()  # what answers from now on is its successor
        at_s = time.time()
        after = operator.wait_until(rollout, "Holding")
        back_s = time.time()
        print(f"\ncontrol was away for {back_s - at_s:.2f} s")
        assert _epoch(platform) > epoch
        assert (after["percent"], after["step"]) == (30, 0)
        assert after["since_s"] > before["since_s"]
        assert _decisions(operator.history(rollout)) == _decisions(decided)
        meanwhile = [one for one in load.since(at_s) if one.ended_s < back_s]
        assert {one.arm for one in meanwhile} == {"stable", "canary"}
        seen = samples(operator, rollout)
        wait_for("new evidence", lambda: samples(operator, rollout) > seen)
        canaries.deploy(INTENT, id=rollout, **plan, hold_s=3)
        operator.wait_until(rollout, "Promoted")
        whole = _decisions(operator.history(rollout))
    assert all_whole(load.answers)
    numbers = [number for number, _, _ in whole]
    assert numbers == list(range(numbers[0], numbers[0] + len(whole)))
    assert whole[: len(decided)] == _decisions(decided)
    assert [(what, percent) for _, what, percent in whole[-2:]] == [
        ("step", 100),
        ("promoted", 100),
    ]


def _epoch(platform: Any) -> int:
    with platform.client(OPS_KEY) as client:
        return int(client.get("/admin/status").raise_for_status().json()["epoch"])


def _decisions(history: list[dict[str, Any]]) -> list[tuple[int, str, float]]:
    return [(one["number"], one["what"], one["percent"]) for one in history]


def test_a_freeze_of_everything_stops_a_step_until_it_ends(
    canaries: Canaries,
    operator: RolloutOperator,
    platform: Any,
    wait_for: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODELYARD_API_KEY", OPS_KEY)  # of `modelyard status`
    rollout = canaries.deploy(INTENT, steps_percent=[30, 100], hold_s=6)
    with users(platform, DEMO_KEY, USERS, classified) as load:
        with frozen(platform):
            operator.verb(rollout, "start")  # a human's verb works
            wait_for("the freeze at control", lambda: _view(operator, rollout)["frozen"])
            assert _view(operator, rollout)["phase"] == "Step"
            assert "freeze" in _view(operator, rollout)["waits_for"]
            time.sleep(REPORTS_S)
            assert _view(operator, rollout)["percent"] == 0
            assert "FROZEN" in platform.run("status").stdout
        operator.wait_until(rollout, "Holding")
        with frozen(platform):
            seen = samples(operator, rollout)
            wait_for("evidence enough", lambda: samples(operator, rollout) > seen + 2 * PAIRS)
            wait_for("the end of the hold", lambda: _view(operator, rollout)["left_s"] == 0)
            time.sleep(REPORTS_S)
            held = _view(operator, rollout)
            assert (held["phase"], held["percent"], held["frozen"]) == ("Holding", 30, "ops-1")
            assert "canary" in arms(load)
        operator.wait_until(rollout, "Promoted")
    assert all_whole(load.answers)
    percents = [one["percent"] for one in operator.history(rollout)]
    assert percents == sorted(percents)
    assert {30, 100} <= set(percents)


def _view(operator: RolloutOperator, rollout: str) -> dict[str, Any]:
    view = operator.view(rollout)
    assert view is not None
    return view


@contextmanager
def frozen(platform: Any) -> Iterator[None]:
    """While the body runs, nothing moves by itself."""
    body = {"kind": "freeze", "target": "*", "expires_in_s": 600, "reason": "a test"}
    with platform.client(OPS_KEY) as client:
        made = client.post("/admin/overrides", json=body).raise_for_status().json()
        try:
            yield
        finally:
            client.delete(f"/admin/overrides/{made['id']}").raise_for_status()
