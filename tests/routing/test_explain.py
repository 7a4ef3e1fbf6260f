import json
from typing import Any

import pytest

from modelyard.config.table import Table, parse_table
from modelyard.contract.operations import Operation
from modelyard.routing.arms import bucket
from modelyard.routing.cells import InFlight
from modelyard.routing.explain import Explanation, explain, tell_cell
from modelyard.routing.fleet import Fleet
from modelyard.routing.pins import Pin, Turn
from modelyard.routing.resolve import resolve
from modelyard.routing.steering import Steering
from modelyard.routing.trail import Step, Trail
from modelyard.tenancy.authenticator import Authenticator, Caller
from modelyard.testing.in_memory import ALPHA_KEY, BETA_KEY, SECRET, post, table_record

SPLIT: dict[str, Any] = {"stable": "gen@1.0.0", "canary": "gen@2.0.0", "rollout": {"id": "r-1"}}


def table_of(**chat: Any) -> Table:
    record = table_record()
    return parse_table(table_record(routes=record["routes"] | {"chat": SPLIT | chat}))


def caller(key: str = ALPHA_KEY) -> Caller:
    return Authenticator(table_of(), SECRET).authenticate(f"Bearer {key}", "invoke")


FLEET = Fleet()
FLEET.update([post("gen@1.0.0"), post("gen@2.0.0"), post("gen@2.0.0--b")])


def explained(
    table: Table | None = None,
    percent: float = 100.0,
    *,
    key: str = "c-1",
    drained: frozenset[str] = frozenset(),
    who: Caller | None = None,
) -> Explanation:
    return explain(
        "chat",
        Operation.CHAT,
        who or caller(),
        table or table_of(),
        FLEET,
        Steering({"r-1": percent}, drained),
        InFlight(),
        key=key,
        nonce="n",
    )


def facts(explanation: Explanation, name: str) -> list[dict[str, Any]]:
    return [step["facts"] for step in explanation.record() if step["name"] == name]


def test_the_arm_is_told_with_its_draw_and_its_weight() -> None:
    drawn = bucket("r-1", "alpha", "c-1")
    (arm,) = facts(explained(percent=5), "arm")
    assert (arm["bucket"], arm["percent"], arm["rollout"]) == (drawn, 5, "r-1")
    (line,) = [one for one in explained(percent=5).lines if one.startswith("arm")]
    assert f"drew {100 * drawn:.2f}, " in line
    assert "the 5 % of r-1" in line


def test_it_tells_what_resolve_does() -> None:
    for n in range(40):
        key = f"c-{n}"
        target = resolve(
            "chat", Operation.CHAT, caller(), table_of(), FLEET, Steering({"r-1": 50.0}), key=key
        )
        (arm,) = facts(explained(percent=50, key=key), "arm")
        assert (arm["arm"], arm["version"]) == (target.arm, target.version)


def test_the_cells_are_told_with_what_is_known_of_them_and_the_keys_replica() -> None:
    (cell,) = facts(explained(), "cell")
    assert cell["cell"] in cell["cells"]
    assert cell["cells"] == {
        app: {"ready": 1, "load": 0, "age_s": 0.1} for app in ("gen@2.0.0", "gen@2.0.0--b")
    }
    assert cell["replica"] == "r1"
    (unkeyed,) = facts(explained(key=""), "cell")
    assert (unkeyed["affinity"], unkeyed["replica"]) == (None, None)


def test_a_fallback_is_told() -> None:
    explanation = explained(drained=frozenset({"gen@2.0.0", "gen@2.0.0--b"}))
    pools = [step.words for step in explanation.steps if step.name == "pool"]
    assert pools[0].startswith("gen@2.0.0: closed to this request")
    assert pools[1] == "gen@1.0.0: ready in gen@1.0.0"
    assert facts(explanation, "cell")[0]["cell"] == "gen@1.0.0"


def test_a_constraint_is_told() -> None:
    table = table_of(constraints=[{"tenants": ["alpha"], "cell": "b", "failover": "gen@3.0.0"}])
    (constraint,) = [step for step in explained(table).steps if step.name == "constraint"]
    assert constraint.words == "only the cell b, failover to gen@3.0.0"
    assert facts(explained(table), "cell")[0]["cell"] == "gen@2.0.0--b"


def test_a_refusal_is_the_last_step() -> None:
    refused = explained(who=caller(BETA_KEY)).steps[-1]
    assert (refused.name, refused.facts) == ("refused", {"status": 403, "reason": "entitlement"})


@pytest.mark.parametrize(
    ("steering", "words"),
    [
        (Steering({"r-1": 0.0}, finished=frozenset({"r-1"})), "stable, gen@1.0.0: the rollout is"),
        (Steering({"r-1": 100.0}, finished=frozenset({"r-1"})), "canary, gen@2.0.0: the rollout"),
        (Steering(shadows={"r-1": 5.0}), "stable, gen@1.0.0: the rollout only copies"),
        (Steering(), "stable, gen@1.0.0: control has given the rollout no weight"),
    ],
)
def test_the_state_of_the_rollout_is_told(steering: Steering, words: str) -> None:
    explanation = explain(
        "chat", Operation.CHAT, caller(), table_of(), FLEET, steering, InFlight(), key="c", nonce=""
    )
    (arm,) = [step.words for step in explanation.steps if step.name == "arm"]
    assert arm.startswith(words)


def test_a_pin_is_told_and_why_one_was_ignored() -> None:
    def told(turn: Turn) -> Step:
        trail = Trail()
        table = table_of(rollout={"id": "r-1", "conversations": "pin"})
        steering = Steering({"r-1": 1.0})
        resolve(
            "chat",
            Operation.CHAT,
            caller(),
            table,
            FLEET,
            steering,
            key="c",
            turn=turn,
            trail=trail,
        )
        return next(step for step in trail.steps if step.name == "arm")

    followed = told(Turn(Pin("gen@2.0.0", "r-1"), goes_on=True))
    assert followed.words == "canary, gen@2.0.0: its pin says so, whatever the draw"
    assert (followed.facts["why"], followed.facts["rollout"]) == ("pin", None)
    ignored = told(Turn(Pin("gen@3.0.0", "r-1"), goes_on=True))
    assert ignored.words.endswith("; its pin is ignored: unknown_version")
    assert ignored.facts["pin_ignored"] == "unknown_version"


@pytest.mark.parametrize("percent", [0.0, 100.0])
def test_the_header_is_one_line_of_json_without_words(percent: float) -> None:
    trail = Trail()
    target = resolve(
        "chat", Operation.CHAT, caller(), table_of(), FLEET, Steering({"r-1": percent}), trail=trail
    )
    tell_cell(trail, target, "key", FLEET, InFlight())
    header = trail.header()
    assert header.isascii()
    assert "\n" not in header
    assert list(json.loads(header)) == ["region", "alias", "arm", "pool", "cell"]
