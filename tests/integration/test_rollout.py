"""A rollout on the running platform, with times of seconds: its machinery, not its statistics.

The canary is the starter classifier again, as another version. What the gates see is
test_rollout_generator.py's business.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from modelyard.config.demo import DEMO_KEY
from tests.integration.ingress_port import port_of
from tests.integration.rollout_load import Asked, Load, classified, classify, users
from tests.integration.rollout_operator import RolloutOperator, with_canary
from tests.integration.rollout_versions import make_version

pytestmark = pytest.mark.integration

ALIAS, STABLE = "support-intent", "support-intent@1.0.0"
CANARY: Final = "support-intent@9.1.0"
IDS = count(1)
USERS: Final = 4
SLOW_TEXTS: Final = 800  # of one request, so that it runs for seconds
Deploy = Callable[..., str]


@pytest.fixture(scope="module")
def operator(platform: Any) -> Iterator[RolloutOperator]:
    with RolloutOperator(platform) as made:
        yield made


@pytest.fixture(scope="module")
def deploy(
    operator: RolloutOperator, platform: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deploy]:
    """Deploys the platform's own file with the canary and a plan; gives the rollout's id. The file
    as it was comes back at the end."""
    original = yaml.safe_load(platform.config.read_text())
    source = Path(platform.home) / "models" / "support-intent" / "1.0.0"
    folder = make_version(source, tmp_path_factory.mktemp("canary"), CANARY.partition("@")[2])
    [classifier] = [one for one in original["applications"] if one["name"] == STABLE]
    app = classifier | {"name": CANARY, "args": {"artifact": folder.as_uri()}}
    app["deployments"] = [classifier["deployments"][0] | {"ray_actor_options": {"num_cpus": 0.3}}]

    def deployed(**plan: Any) -> str:
        whole = {
            "id": f"intent-{next(IDS)}",
            "hold_s": 3,
            "min_samples": 20,
            "keep_for_s": 0,
            # One bug of one arm is what these tests want to see, and noise of two shared cores not.
            "gates": {"errors": {"margin_points": 20}, "ttft": None, "e2e": None, "tokens": None},
        } | plan
        operator.deploy(with_canary(original, ALIAS, CANARY, app, whole))
        return str(whole["id"])

    yield deployed
    operator.deploy(original)


def all_whole(answers: list[Asked]) -> bool:
    bad = [one for one in answers if not one.whole]
    assert not bad, bad[:5]
    wanted = {"stable": STABLE, "canary": CANARY}
    assert {one.arm for one in answers} <= set(wanted)
    assert all(one.version == wanted[one.arm] for one in answers)
    return True


def known(load: Load, at_s: float, arm: str) -> bool:
    """For a second nobody was sent elsewhere; what came later than this moment counts."""
    latest = load.since(max(at_s, time.time() - 1.0))
    return time.time() - at_s > 1.0 and bool(latest) and all(one.arm == arm for one in latest)


def report_lag(platform: Any, load: Load, at_s: float, old_arm: str) -> None:
    """How long each ingress went on with the old weight, of requests sent after the operator's
    word began. Reported and not asserted: it is a time of this machine."""
    late = {one.request_id: one.sent_s - at_s for one in load.since(at_s) if one.arm == old_arm}
    sent = {one.request_id for one in load.since(at_s)}
    lag_s: dict[str, float] = {}
    for path in (Path(platform.home) / "logs").glob("requests-*.jsonl"):
        text = path.read_text()
        if any(name in text for name in sent):
            mine = [seconds for name, seconds in late.items() if name in text]
            lag_s[path.stem] = round(max(mine, default=0.0), 3)
    print(f"\nseconds until an ingress followed: {lag_s}")


def every_ingress_answers_from(platform: Any, arm: str) -> bool:
    """Each asked at its own port: HAProxy may have sent all users to one."""
    ingresses = platform.ingresses()
    assert len(ingresses) == 2
    for ingress in ingresses:
        url = f"http://127.0.0.1:{port_of(ingress)}"
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {DEMO_KEY}"}) as client:
            asked = [classify(client, f"direct-{number}", ["hello"]) for number in range(10)]
        if {one.arm for one in asked} != {arm}:
            return False
    return True


def test_it_goes_step_by_step_and_is_promoted(
    deploy: Deploy, operator: RolloutOperator, platform: Any, wait_for: Any
) -> None:
    rollout = deploy(steps_percent=[30, 100])
    with users(platform, DEMO_KEY, USERS, classified) as load:
        pending = operator.wait_until(rollout, "Pending")
        assert (pending["percent"], pending["start"]) == (0, "manual")
        operator.verb(rollout, "start")
        holding = operator.wait_until(rollout, "Holding")
        assert holding["percent"] == 30
        promoted = operator.wait_until(rollout, "Promoted")
        assert promoted["percent"] == 100
        at_s = time.time()
        wait_for("nobody on the stable version", lambda: known(load, at_s, "canary"))
    assert all_whole(load.answers)
    assert {one.arm for one in load.answers} == {"stable", "canary"}
    percents = [one["percent"] for one in operator.history(rollout)]
    assert sorted(percents) == percents or sorted(percents, reverse=True) == percents
    assert {30, 100} <= set(percents)


def test_a_rollback_cuts_nobody_off_and_everybody_follows(
    deploy: Deploy, operator: RolloutOperator, platform: Any, wait_for: Any
) -> None:
    """Also: the same file again changes nothing while it runs."""
    rollout = deploy(steps_percent=[50, 100], hold_s=600)
    texts = [f"where is my parcel with the number {number}?" * 8 for number in range(SLOW_TEXTS)]
    with users(platform, DEMO_KEY, USERS, classified) as load:
        operator.wait_until(rollout, "Pending")
        operator.verb(rollout, "start")
        operator.wait_until(rollout, "Holding")
        before, revision = operator.view(rollout), operator.revision()
        assert before is not None
        deploy(id=rollout, steps_percent=[50, 100], hold_s=600)
        wait_for(
            "samples after the deploy", lambda: _samples(operator, rollout) > before["samples"]
        )
        after = operator.view(rollout)
        assert after is not None
        assert (after["phase"], after["percent"]) == ("Holding", 50)
        assert after["since_s"] > before["since_s"]
        assert operator.revision() == revision

        on_canary = wait_for("a canary conversation", lambda: _conversation(platform))
        with ThreadPoolExecutor(1) as pool, platform.client(DEMO_KEY) as client:
            slow = pool.submit(classify, client, on_canary, texts)
            time.sleep(0.5)  # it has left the ingress; an answer would take many times that
            at_s = time.time()
            operator.verb(rollout, "rollback")
            rolled_back_s = time.time()
            print(f"\nthe verb took {rolled_back_s - at_s:.3f} s")
            kept = slow.result()
        wait_for("nobody on the canary", lambda: known(load, at_s, "stable"))
        assert every_ingress_answers_from(platform, "stable")
    report_lag(platform, load, at_s, "canary")
    assert all_whole([*load.answers, kept])
    assert (kept.arm, kept.version) == ("canary", CANARY)
    assert kept.ended_s > rolled_back_s, "it was not under way any more: make it slower"
    over = operator.view(rollout)
    assert over is not None
    assert (over["phase"], over["percent"]) == ("RolledBack", 0)
    deploy(id=rollout, steps_percent=[50, 100], hold_s=600)
    with platform.client(DEMO_KEY) as client:
        later = [classify(client, f"later-{number}", ["hello"]) for number in range(30)]
    assert {one.arm for one in later} == {"stable"}
    again = operator.view(rollout)
    assert again is not None
    assert again["phase"] == "RolledBack"


def _samples(operator: RolloutOperator, rollout: str) -> int:
    view = operator.view(rollout)
    return 0 if view is None else int(view["samples"])


def _conversation(platform: Any) -> str:
    """One that the draw sends to the canary."""
    with platform.client(DEMO_KEY) as client:
        for number in range(50):
            name = f"drawn-{number}"
            if classify(client, name, ["hello"]).arm == "canary":
                return name
    return ""
