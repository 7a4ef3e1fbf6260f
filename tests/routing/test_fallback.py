"""Where a route's fallback may answer, and where it may not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modelyard.config.table import Table, parse_table
from modelyard.contract.errors import Forbidden
from modelyard.contract.operations import Kind, Operation
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post
from modelyard.routing.fallback import fallback_of
from modelyard.routing.fleet import Fleet
from modelyard.routing.resolve import Target, resolve
from modelyard.routing.steering import UNSTEERED, Steering
from modelyard.tenancy.authenticator import Authenticator, Caller
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    BETA_KEY,
    EVALUATOR_KEY,
    SECRET,
    post,
    table_record,
)

ROUTE: dict[str, Any] = {
    "stable": "gen@1.0.0",
    "canary": "gen@2.0.0",
    "rollout": {"id": "r-1"},
    "overload": {"fallback": "small@1.0.0"},
}
TENANTS = {
    "alpha": {"region": "eu", "models": ["*"]},
    "beta": {"region": "eu", "models": ["embed"]},
}


def table_of(tenants: dict[str, Any] = TENANTS, **changes: Any) -> Table:
    embed = {"stable": "emb@1.0.0", "overload": {"fallback": "emb@2.0.0"}}
    routes = {"chat": ROUTE | changes, "embed": embed}
    return parse_table(table_record(routes=routes, tenants=tenants))


TABLE = table_of()
KEYS = (ALPHA_KEY, BETA_KEY, EVALUATOR_KEY)
ALPHA, BETA, EVALUATOR = (
    Authenticator(TABLE, SECRET).authenticate(f"Bearer {key}", "invoke") for key in KEYS
)


def fleet_of(*posts: Post) -> Fleet:
    fleet = Fleet()
    fleet.update(posts)
    return fleet


READY = fleet_of(
    *(post(version) for version in ("gen@1.0.0", "gen@2.0.0", "small@1.0.0")),
    *(post(version, Kind.EMBEDDER) for version in ("emb@1.0.0", "emb@2.0.0")),
)
TARGET = resolve("chat", Operation.CHAT, ALPHA, TABLE, READY)


def fallback(
    target: Target = TARGET,
    caller: Caller = ALPHA,
    table: Table = TABLE,
    fleet: Fleet = READY,
    steering: Steering = UNSTEERED,
) -> Target | None:
    return fallback_of(target, caller, table, fleet, steering)


def test_the_smaller_version_answers_under_the_same_alias() -> None:
    found = fallback()
    assert found is not None
    assert (found.alias, found.version, found.why) == ("chat", "small@1.0.0", "fallback")
    assert found.description.version == "small@1.0.0"
    assert [cell.app for cell in found.pool.cells] == ["small@1.0.0"]
    assert found.route is TARGET.route


def test_for_a_canarys_request_too_and_it_is_no_evidence_for_the_rollout() -> None:
    steering = Steering({"r-1": 100.0})
    target = resolve("chat", Operation.CHAT, ALPHA, TABLE, READY, steering)
    assert (target.arm, target.rollout) == ("canary", "r-1")
    found = fallback(target, steering=steering)
    assert found is not None
    assert (found.arm, found.rollout, found.missing) == ("stable", "", "")


LOADING = fleet_of(post("gen@1.0.0"), post("small@1.0.0", phase=Phase.LOADING))
OTHER_KIND = fleet_of(post("gen@1.0.0"), post("small@1.0.0", Kind.CLASSIFIER))
NOWHERE: dict[str, dict[str, Any]] = {
    "no fallback": {"target": replace(TARGET, route=table_of(overload={}).routes["chat"])},
    "the fallback itself": {"target": replace(TARGET, version="small@1.0.0")},
    "a version named outright": {"target": replace(TARGET, alias="gen@1.0.0")},
    "a fallback that no replica has ever loaded": {"fleet": fleet_of(post("gen@1.0.0"))},
    "a fallback that still loads": {"fleet": LOADING},
    "a fallback of another kind": {"fleet": OTHER_KIND},
    "a drained fallback": {"steering": Steering({}, frozenset({"small@1.0.0"}))},
    "an embedder": {"target": resolve("embed", Operation.EMBED, ALPHA, TABLE, READY)},
}


@pytest.mark.parametrize("options", NOWHERE.values(), ids=NOWHERE)
def test_there_is_no_fallback(options: dict[str, Any]) -> None:
    assert fallback(**options) is None


def test_a_tenant_with_a_cell_of_its_own_stays_in_it() -> None:
    table = table_of(constraints=[{"tenants": ["alpha"], "cell": "b"}])
    fleet = fleet_of(post("gen@1.0.0--b"), post("small@1.0.0"))
    target = resolve("chat", Operation.CHAT, ALPHA, table, fleet)
    assert fallback(target, table=table, fleet=fleet) is None
    fleet = fleet_of(post("gen@1.0.0--b"), post("small@1.0.0"), post("small@1.0.0--b"))
    found = fallback(target, table=table, fleet=fleet)
    assert found is not None
    assert [cell.app for cell in found.pool.cells] == ["small@1.0.0--b"]


def test_nobody_else_falls_back_into_it() -> None:
    tenants = TENANTS | {"beta": {"region": "eu", "models": ["*"]}}
    table = table_of(tenants, constraints=[{"tenants": ["beta"], "cell": "b"}])
    fleet = fleet_of(post("gen@1.0.0"), post("small@1.0.0--b"))
    target = resolve("chat", Operation.CHAT, ALPHA, table, fleet)
    assert fallback(target, table=table, fleet=fleet) is None


def test_who_may_not_use_the_alias_may_not_name_its_fallback_either() -> None:
    with pytest.raises(Forbidden) as caught:
        resolve("small@1.0.0", Operation.CHAT, EVALUATOR, TABLE, READY)
    assert caught.value.reason == "entitlement"
    with pytest.raises(Forbidden) as caught:
        resolve("chat", Operation.CHAT, BETA, TABLE, READY)
    assert caught.value.reason == "entitlement"
