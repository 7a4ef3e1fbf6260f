from dataclasses import replace
from typing import Any

import pytest

from modelyard.config.table import parse_table
from modelyard.contract.envelope import Failure
from modelyard.contract.operations import Operation
from modelyard.lifecycle.report import Post
from modelyard.routing.fleet import Fleet
from modelyard.routing.other_arm import other_arm
from modelyard.routing.resolve import Target, resolve
from modelyard.routing.steering import Steering
from modelyard.tenancy.authenticator import Authenticator, Caller
from modelyard.testing.in_memory import ALPHA_KEY, SECRET, post, table_record

SPLIT = {"stable": "gen@1.0.0", "canary": "gen@2.0.0", "rollout": {"id": "r-1"}}
TENANTS = {"alpha": {"region": "eu", "models": ["*"]}, "beta": {"region": "eu"}}
TABLE = parse_table(table_record(routes={"chat": SPLIT}, tenants=TENANTS))
ALPHA = Authenticator(TABLE, SECRET).authenticate(f"Bearer {ALPHA_KEY}", "invoke")
FIVE = Steering({"r-1": 5.0})
TOO_LONG = Failure("invalid_request", "too long", wire_code="context_length_exceeded")
OUTPUT = Failure("invalid_request", "too many", reason="output_limit")
UNSUPPORTED = Failure("invalid_request", "no tools", reason="unsupported", wire_code="unsupported")
OTHERS = Failure("invalid_request", "a wrong field")


def of(app: str, context: int, output: int | None = 512) -> Post:
    made = post(app)
    assert made.report.description is not None
    description = replace(
        made.report.description, max_context_tokens=context, max_output_tokens=output
    )
    return replace(made, report=replace(made.report, description=description))


def fleet_of(*posts: Post) -> Fleet:
    fleet = Fleet()
    fleet.update(posts)
    return fleet


LONGER = fleet_of(of("gen@1.0.0", 2048), of("gen@2.0.0", 8192, 1024))
STABLE: Target = resolve("chat", Operation.CHAT, ALPHA, TABLE, LONGER)


def other(
    failure: Failure = TOO_LONG,
    target: Target = STABLE,
    caller: Caller = ALPHA,
    fleet: Fleet = LONGER,
    steering: Steering = FIVE,
) -> Target | None:
    return other_arm(target, failure, caller, TABLE, fleet, steering)


@pytest.mark.parametrize("failure", [TOO_LONG, OUTPUT, UNSUPPORTED])
def test_what_only_the_canary_can_do_goes_there(failure: Failure) -> None:
    found = other(failure)
    assert found is not None
    assert (found.version, found.arm, found.required) == ("gen@2.0.0", "canary", True)
    assert found.rollout == ""  # no draw put it there, so it is no evidence for the gate
    assert found.description.max_context_tokens == 8192


def test_and_from_the_canary_to_stable() -> None:
    target = resolve("chat", Operation.CHAT, ALPHA, TABLE, LONGER, Steering({"r-1": 100.0}))
    assert target.arm == "canary"
    shorter = fleet_of(of("gen@1.0.0", 8192), of("gen@2.0.0", 2048))
    short = replace(target, description=replace(target.description, max_context_tokens=2048))
    found = other(TOO_LONG, short, fleet=shorter)
    assert found is not None
    assert (found.version, found.arm) == ("gen@1.0.0", "stable")


def test_it_is_sent_on_once_and_never_back() -> None:
    found = other(UNSUPPORTED)
    assert found is not None
    assert other(UNSUPPORTED, found) is None


NOWHERE: dict[str, dict[str, Any]] = {
    "a mistake of the caller's": {"failure": OTHERS},
    "an arm no longer than this": {"fleet": fleet_of(of("gen@1.0.0", 2048), of("gen@2.0.0", 2048))},
    "an arm without a replica": {"fleet": fleet_of(of("gen@1.0.0", 2048))},
    "a canary that has not begun": {"steering": Steering()},
    "a canary that was rolled back": {"steering": Steering({"r-1": 0.0})},
    "a drained canary": {"steering": Steering({"r-1": 5.0}, frozenset({"gen@2.0.0"}))},
    "a tenant without the arm": {
        "caller": replace(ALPHA, claim=replace(ALPHA.claim, arms=("stable",)))
    },
    "a version named outright": {"target": replace(STABLE, alias="gen@1.0.0")},
}


@pytest.mark.parametrize("options", NOWHERE.values(), ids=NOWHERE)
def test_there_is_no_way_to(options: dict[str, Any]) -> None:
    assert other(**options) is None
