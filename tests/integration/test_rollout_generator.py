"""Rollouts of a real generator, with shortened times: an equal version, and four that are not.

Each canary is a real engine with weights of its own. Users ask all the while, and every answer is
looked at: but for the one canary that fails by itself, nobody may notice anything.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from modelyard.config.demo import DEMO_KEY, OPS_KEY
from modelyard.tenancy.keys import hash_key
from tests.integration.rollout_load import Asked, Load, chats, users
from tests.integration.rollout_operator import RolloutOperator, with_canary
from tests.integration.rollout_versions import chatty, make_version, same, wrong

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PORT_OFFSET: Final = 710
ROOT: Final = Path(__file__).parents[2]
CONFIG: Final = ROOT / "configs" / "local.serve.yaml"
ALIAS, NAME = "support-assistant", "smollm2-135m-instruct"
STABLE: Final = f"{NAME}@1.0.0"
EVALUATE_KEY: Final = "my_evaluate-1_for-tests-of-modelyard"
USERS: Final = 6
SHORT, LONG = 16, 96  # tokens, of an answer's cap
PLACES: Final = (
    *("France", "Italy", "Spain", "Japan", "Norway", "Egypt", "Peru", "Cuba", "Chile", "Kenya"),
    *("India", "China", "Iran", "Iraq", "Greece", "Turkey", "Poland", "Sweden", "Finland", "Mali"),
    *("Germany", "Austria", "Hungary", "Ireland", "Iceland", "Portugal", "Belgium", "Denmark"),
    *("Canada", "Mexico", "Brazil", "Bolivia", "Morocco", "Ghana", "Nigeria", "Israel", "Jordan"),
    *("Thailand", "Vietnam", "Nepal"),
)
QUESTIONS: Final = [f"What is the capital of {place}?" for place in PLACES]
# Both arms have half of the requests, so that both engines work under the same load; and so much
# is asked of a step that a bad canary is found within it.
PLAN: Final[dict[str, Any]] = {
    "steps_percent": [50, 100],
    "hold_s": 10,
    "min_samples": 500,
    "keep_for_s": 0,
    "limits": {"errors_percent": 30},
}


@pytest.fixture(scope="module")
def platform(
    start_platform: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Any]:
    """One generator, without quotas. Its replicas can import the tests' own shells."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "platform")))
    try:
        home = tmp_path_factory.mktemp("rollout")
        with start_platform(home, PORT_OFFSET, _text()) as made:
            yield made
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _text() -> str:
    record = yaml.safe_load(CONFIG.read_text())
    record["applications"] = record["applications"][:3]
    table = record["applications"][0]["deployments"][0]["user_config"]
    table["routes"] = {ALIAS: table["routes"][ALIAS]}
    table["quotas"] = {}
    del table["tenants"]["nightly"]
    table["keys"] = [key for key in table["keys"] if key.get("tenant") != "nightly"]
    evaluate = {"id": "evaluate-1", "tenant": "demo", "roles": ["invoke", "evaluate"]}
    table["keys"].append(evaluate | {"sha256": hash_key(EVALUATE_KEY)})
    return str(yaml.safe_dump(record, sort_keys=False))


@pytest.fixture(scope="module")
def operator(platform: Any) -> Iterator[RolloutOperator]:
    with RolloutOperator(platform) as made:
        yield made


class Deployed:
    """One canary under its rollout."""

    def __init__(self, operator: RolloutOperator, rollout: str, canary: str) -> None:
        self.operator, self.rollout, self.canary = operator, rollout, canary

    def start(self) -> None:
        """Once control has the file."""
        self.operator.wait_until(self.rollout, "Pending")
        self.operator.verb(self.rollout, "start")

    def ends(self, *phases: str) -> dict[str, Any]:
        view = self.operator.wait_until(self.rollout, *phases)
        print(f"\n{self.operator.platform.run('rollout', 'status', self.rollout).stdout}")
        return view


Bring = Callable[..., Deployed]


@pytest.fixture
def bring(
    operator: RolloutOperator,
    platform: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Bring:
    """Deploy a canary: a version made by `change`, behind the usual shell or one of the tests'."""
    monkeypatch.setenv("MODELYARD_API_KEY", OPS_KEY)  # of the command, which tests run too
    original = yaml.safe_load(platform.config.read_text())

    def brought(
        version: str,
        change: Callable[[Path], None] = same,
        shell: str = "deployments.generator:app",
        **plan: Any,
    ) -> Deployed:
        source = Path(platform.home) / "models" / NAME / "1.0.0"
        folder = make_version(source, tmp_path, version, change)
        [generator] = [one for one in original["applications"] if one["name"] == STABLE]
        app = generator | {"name": f"{NAME}@{version}", "import_path": shell}
        app["args"] = generator["args"] | {"artifact": folder.as_uri()}
        whole = {"id": f"v{version}"} | PLAN | plan
        operator.deploy(with_canary(original, ALIAS, app["name"], app, whole))
        return Deployed(operator, str(whole["id"]), app["name"])

    return brought


def no_fault_but(load: Load, deployed: Deployed, *injected: str) -> list[Asked]:
    """Nobody met a fault, but for a canary's own. Gives all the answers."""
    answers, platform = load.answers, deployed.operator.platform
    bad = [one for one in answers if not one.whole or (one.status == 200 and not one.text)]
    unexplained = [
        one
        for one in bad
        # An error names no version; the log does.
        if one.code not in injected
        or [line["version"] for line in platform.log_of(one.request_id)] != [deployed.canary]
    ]
    assert not unexplained, unexplained[:5]
    assert {one.version for one in answers if one.version} <= {STABLE, deployed.canary}
    counts = Counter((one.arm, one.code) for one in answers)
    print(f"answers by arm and code: {dict(counts)}")
    return answers


def nobody_on(load: Load, arm: str, at_s: float) -> bool:
    """Of many requests after a moment; a long answer takes seconds here, so they are waited for."""
    deadline = time.monotonic() + 120
    while len(later := load.since(at_s + 1.0)) < USERS and time.monotonic() < deadline:
        time.sleep(0.2)
    return len(later) >= USERS and all(one.arm != arm for one in later)


def failing_gates(view: dict[str, Any]) -> set[str]:
    return {gate["gate"] for gate in view["gates"] if gate["state"] == "failing"}


def deciding(operator: RolloutOperator, rollout: str) -> dict[str, Any]:
    """The latest decision."""
    return min(operator.history(rollout), key=lambda one: float(one["at_s_ago"]))


def test_the_same_model_again_is_promoted(bring: Bring) -> None:
    deployed = bring("2.0.0", min_samples=100)
    with users(deployed.operator.platform, DEMO_KEY, USERS, chats(QUESTIONS, SHORT)) as load:
        deployed.start()
        deployed.ends("Promoted")
        assert nobody_on(load, "stable", time.time())
    answers = no_fault_but(load, deployed)
    assert Counter(one.arm for one in answers)["canary"] >= 200


def test_five_percent_errors_are_rolled_back(bring: Bring) -> None:
    deployed = bring("2.1.0", shell="tests.integration.rollout_canaries:failing")
    with users(deployed.operator.platform, DEMO_KEY, USERS, chats(QUESTIONS, SHORT)) as load:
        deployed.start()
        deployed.ends("RolledBack")
        assert nobody_on(load, "canary", time.time())
    no_fault_but(load, deployed, "internal")
    assert any(not one.whole for one in load.answers), "the canary failed nobody"
    decision = deciding(deployed.operator, deployed.rollout)
    assert decision["author"] == "control"
    assert "(errors" in decision["why"]


def test_a_slower_canary_is_rolled_back(bring: Bring) -> None:
    deployed = bring("2.2.0", shell="tests.integration.rollout_canaries:slow")
    with users(deployed.operator.platform, DEMO_KEY, USERS, chats(QUESTIONS, SHORT)) as load:
        deployed.start()
        deployed.ends("RolledBack")
        assert nobody_on(load, "canary", time.time())
    no_fault_but(load, deployed)
    why = deciding(deployed.operator, deployed.rollout)["why"]
    assert "(ttft" in why or "(e2e" in why


def test_a_canary_that_writes_twice_as_much_is_held(bring: Bring) -> None:
    # What writes more takes longer, too: those gates would roll it back before a human is asked.
    gates = {"ttft": None, "e2e": None}
    deployed = bring("2.3.0", change=chatty, gates=gates)
    with users(deployed.operator.platform, DEMO_KEY, USERS, chats(QUESTIONS, LONG)) as load:
        deployed.start()
        held = deployed.ends("AwaitingApproval")
        assert failing_gates(held) == {"tokens"}
        assert held["percent"] == 50
        deployed.operator.verb(deployed.rollout, "rollback", "twice the cost")
        assert nobody_on(load, "canary", time.time())
    no_fault_but(load, deployed)
    assert deciding(deployed.operator, deployed.rollout)["author"] == "ops-1"


def test_wrong_answers_are_found_by_a_golden_set_and_held(bring: Bring, tmp_path: Path) -> None:
    quality = {"margin_points": 5, "judgements": len(QUESTIONS)}
    gates = {"ttft": None, "e2e": None, "tokens": None, "quality": quality}
    deployed = bring("2.4.0", change=wrong, gates=gates)
    platform = deployed.operator.platform
    golden = tmp_path / "golden.jsonl"
    with users(platform, DEMO_KEY, USERS // 3, chats(QUESTIONS, SHORT)) as load:
        deployed.start()
        deployed.operator.wait_until(deployed.rollout, "Holding")
        golden.write_text("\n".join(_golden(platform, question) for question in QUESTIONS))
        done = platform.run(
            *("rollout", "replay", deployed.rollout, "--golden", str(golden)),
            *("--api-key", EVALUATE_KEY),
        )
        print(done.stdout[-1500:])
        assert done.returncode == 0, done.stderr
        held = deployed.ends("AwaitingApproval")
        assert failing_gates(held) == {"quality"}
        deployed.operator.verb(deployed.rollout, "rollback", "wrong answers")
        assert nobody_on(load, "canary", time.time())
    no_fault_but(load, deployed)


def _golden(platform: Any, question: str) -> str:
    """What the stable version says, as the right answer."""
    messages = [{"role": "user", "content": question}]
    body = {"model": STABLE, "messages": messages, "temperature": 0, "max_tokens": SHORT}
    with platform.client(EVALUATE_KEY) as client:
        answer = client.post("/v1/chat/completions", json=body).raise_for_status().json()
    text = answer["choices"][0]["message"]["content"]
    expect = {"contains": text[: len(text) // 2]}
    return json.dumps({"messages": messages, "expect": expect, "max_tokens": SHORT})
