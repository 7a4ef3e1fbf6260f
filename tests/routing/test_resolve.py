import contextlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.table import Table, parse_table
from modelyard.contract.errors import Forbidden, InvalidRequest, NotFound, Overloaded, RequestError
from modelyard.contract.operations import Kind, Operation
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post
from modelyard.routing.fleet import Fleet
from modelyard.routing.pins import Pin, Turn
from modelyard.routing.pool import Cell, Pool
from modelyard.routing.resolve import NotLoaded, Target, resolve, visible_aliases
from modelyard.routing.steering import Steering
from modelyard.tenancy.authenticator import Authenticator, Caller
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    BETA_KEY,
    EVALUATOR_KEY,
    SECRET,
    VERSIONS,
    description,
    post,
    table_record,
)

TABLE: Table = parse_table(table_record())
GENERATOR_ROUTES = ("/v1/generate", "/v1/chat/completions", "/v1/completions", "/v1/responses")
CALLERS = {
    key: Authenticator(TABLE, SECRET).authenticate(f"Bearer {key}", "invoke")
    for key in (ALPHA_KEY, BETA_KEY, EVALUATOR_KEY)
}
ALPHA, BETA, EVALUATOR = CALLERS.values()


def ready_fleet() -> Fleet:
    fleet = Fleet()
    fleet.update(post(version, kind) for version, kind in VERSIONS.values())
    return fleet


def found(alias: str, operation: Operation = Operation.CHAT, caller: Caller = ALPHA) -> Target:
    return resolve(alias, operation, caller, TABLE, ready_fleet())


def test_an_alias_leads_to_its_stable_version() -> None:
    assert found("chat") == Target(
        alias="chat",
        version="gen@1.0.0",
        arm="stable",
        rollout="",
        route=TABLE.routes["chat"],
        description=description("gen@1.0.0", Kind.GENERATOR),
        pool=Pool("gen@1.0.0", (Cell("gen@1.0.0", "Generator"),)),
    )


def test_an_alias_with_a_slash_is_an_alias() -> None:
    assert found("team/embed", Operation.EMBED).version == "emb@1.0.0"


@pytest.mark.parametrize("caller", [ALPHA, BETA])
def test_an_unknown_alias_is_404(caller: Caller) -> None:
    with pytest.raises(NotFound, match="GET /v1/models") as caught:
        found("gone", caller=caller)
    assert (caught.value.status, caught.value.param) == (404, "model")
    assert caught.value.wire_code == "model_not_found"


@pytest.mark.parametrize(
    ("alias", "operation", "kind"),
    [("team/embed", Operation.CHAT, "an embedder"), ("chat", Operation.EMBED, "a generator")],
)
def test_a_model_of_another_kind_says_what_it_is(
    alias: str, operation: Operation, kind: str
) -> None:
    with pytest.raises(InvalidRequest, match=f"^{alias} is {kind}: use "):
        found(alias, operation)


def test_an_alias_of_others_is_403() -> None:
    with pytest.raises(Forbidden, match="beta") as caught:
        found("chat", caller=BETA)
    assert (caught.value.param, caught.value.reason) == ("model", "entitlement")
    assert found("team/embed", Operation.EMBED, BETA).version == "emb@1.0.0"


@pytest.mark.parametrize(
    ("alias", "operation", "routes"),
    [
        ("chat", Operation.EMBED, " or ".join(GENERATOR_ROUTES)),
        ("team/embed", Operation.CHAT, "/v1/embeddings"),
        ("intent", Operation.RERANK, "/v1/classify"),
        ("rerank", Operation.GENERATE, "/v1/rerank or /v1/score"),
    ],
)
def test_the_wrong_kind_is_400_and_names_the_right_routes(
    alias: str, operation: Operation, routes: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        found(alias, operation)
    assert caught.value.param == "model"
    assert caught.value.message.endswith(f"use {routes}")


def test_a_model_that_is_not_loaded_is_503_until_its_load_time() -> None:
    fleet = Fleet()
    fleet.update([post("gen@1.0.0", load_s=42.0)])
    fleet.update([])
    with pytest.raises(Overloaded, match="not loaded") as caught:
        resolve("chat", Operation.CHAT, ALPHA, TABLE, fleet)
    assert (caught.value.retry_after_s, caught.value.reason) == (42.0, "not_loaded")
    assert caught.value.retryable


def test_a_model_that_was_never_loaded_is_503_too() -> None:
    with pytest.raises(Overloaded):
        resolve("chat", Operation.CHAT, ALPHA, TABLE, Fleet())


def test_the_wrong_kind_is_said_even_while_nothing_is_loaded() -> None:
    fleet = ready_fleet()
    fleet.update([])
    with pytest.raises(InvalidRequest):
        resolve("chat", Operation.EMBED, ALPHA, TABLE, fleet)


def test_an_evaluator_may_name_a_version_that_no_alias_leads_to() -> None:
    fleet = ready_fleet()
    fleet.update([post("gen@2.0.0")])
    target = resolve("gen@2.0.0", Operation.CHAT, EVALUATOR, TABLE, fleet)
    assert (target.version, target.alias) == ("gen@2.0.0", "gen@2.0.0")


def test_an_evaluator_gets_the_limits_of_the_route_that_serves_the_version() -> None:
    routes = table_record()["routes"] | {
        "chat": {"stable": "gen@1.0.0", "limits": {"max_output_tokens": 300}}
    }
    table = parse_table(table_record(routes=routes))
    entitled = replace(EVALUATOR, claim=replace(EVALUATOR.claim, models=("chat",)))
    target = resolve("gen@1.0.0", Operation.CHAT, entitled, table, ready_fleet())
    assert target.route.limits.max_output_tokens == 300


def test_naming_a_version_is_no_way_around_the_entitlement_to_its_alias() -> None:
    outside = replace(EVALUATOR, claim=replace(EVALUATOR.claim, models=()))
    with pytest.raises(Forbidden) as caught:
        resolve("gen@1.0.0", Operation.CHAT, outside, TABLE, ready_fleet())
    assert caught.value.reason == "entitlement"


@pytest.mark.parametrize("caller", [ALPHA, BETA])
def test_nobody_else_may_name_a_version(caller: Caller) -> None:
    with pytest.raises(Forbidden, match="role evaluate") as caught:
        found("gen@1.0.0", caller=caller)
    assert (caught.value.param, caught.value.reason) == ("model", "role")


@pytest.mark.parametrize(
    "version", ["@", "gen@", "@1", "Gen@1", "gen@1@2", "gen 1@2", "x" * 200 + "@"]
)
def test_a_version_that_cannot_exist_is_404(version: str) -> None:
    with pytest.raises(NotFound) as caught:
        found(version, caller=EVALUATOR)
    assert caught.value.param == "model"


@given(
    alias=st.text() | st.text(alphabet="gem@1.-0"),
    operation=st.sampled_from(Operation),
    caller=st.sampled_from([ALPHA, BETA, EVALUATOR]),
)
def test_any_name_is_resolved_or_refused_with_a_request_error(
    alias: str, operation: Operation, caller: Caller
) -> None:
    with contextlib.suppress(RequestError):
        found(alias, operation, caller)


def test_a_caller_sees_its_own_aliases_in_the_tables_order() -> None:
    assert visible_aliases(ALPHA, TABLE) == ("chat", "team/embed", "intent", "rerank")
    assert visible_aliases(BETA, TABLE) == ("team/embed",)


SPLIT = {"stable": "gen@1.0.0", "canary": "gen@2.0.0", "rollout": {"id": "r-1"}}
HALF = Steering({"r-1": 50.0})
ALL = Steering({"r-1": 100.0})


def table_of(**chat: Any) -> Table:
    routes = table_record()["routes"] | {"chat": SPLIT | chat}
    return parse_table(table_record(routes=routes))


def fleet_of(*apps: str) -> Fleet:
    fleet = Fleet()
    fleet.update([post(app, phase=Phase.FAILED) for app in ("gen@1.0.0", "gen@2.0.0", "gen@3.0.0")])
    fleet.update([post(app) for app in apps])
    return fleet


BOTH = fleet_of("gen@1.0.0", "gen@2.0.0")


def steered(
    steering: Steering = ALL,
    table: Table | None = None,
    fleet: Fleet = BOTH,
    caller: Caller = ALPHA,
    **options: Any,
) -> Target:
    return resolve("chat", Operation.CHAT, caller, table or table_of(), fleet, steering, **options)


def test_a_conversation_keeps_its_arm_and_both_arms_name_the_rollout() -> None:
    found = {key: steered(HALF, key=key) for key in map(str, range(60))}
    assert {(one.arm, one.version, one.rollout) for one in found.values()} == {
        ("stable", "gen@1.0.0", "r-1"),
        ("canary", "gen@2.0.0", "r-1"),
    }
    assert all(steered(HALF, key=key, nonce="other") == one for key, one in found.items())


def test_without_a_word_of_control_all_is_stable() -> None:
    target = steered(Steering())
    assert (target.arm, target.version, target.rollout) == ("stable", "gen@1.0.0", "")


def test_a_tenant_without_the_arm_stays_on_stable() -> None:
    caller = replace(ALPHA, claim=replace(ALPHA.claim, arms=("stable",)))
    assert steered(caller=caller).version == "gen@1.0.0"


def test_a_canary_without_a_replica_is_answered_by_stable_and_wished_for() -> None:
    target = steered(fleet=fleet_of("gen@1.0.0"))
    assert (target.arm, target.version, target.missing) == ("stable", "gen@1.0.0", "gen@2.0.0")
    assert target.rollout == ""  # the draw was not followed: it is evidence of nothing


@pytest.mark.parametrize("region", ["us", "local"])
@pytest.mark.parametrize("alias", ["chat", "gen@1.0.0", "gone"])
def test_data_of_another_region_is_refused_whatever_is_asked(region: str, alias: str) -> None:
    for caller in (ALPHA, EVALUATOR):
        stranger = replace(caller, claim=replace(caller.claim, region=region))
        with pytest.raises(Forbidden) as caught:
            resolve(alias, Operation.CHAT, stranger, table_of(), BOTH, ALL)
        assert caught.value.reason == "residency"


def test_a_tenant_that_names_no_region_may_be_answered_anywhere() -> None:
    anywhere = replace(ALPHA, claim=replace(ALPHA.claim, region=""))
    assert steered(caller=anywhere).version == "gen@2.0.0"


FAILOVER = table_of(constraints=[{"failover": "gen@3.0.0"}])


def test_failover_answers_when_no_arm_has_a_replica() -> None:
    target = steered(table=FAILOVER, fleet=fleet_of("gen@3.0.0"))
    assert (target.version, target.arm, target.rollout) == ("gen@3.0.0", "stable", "")
    assert target.missing == "gen@2.0.0"
    assert steered(table=FAILOVER, fleet=fleet_of("gen@3.0.0", "gen@1.0.0")).version == "gen@1.0.0"


def test_the_first_constraint_that_names_a_tenant_is_its_own() -> None:
    table = table_of(constraints=[{"tenants": ["alpha"]}, {"failover": "gen@3.0.0"}])
    fleet = fleet_of("gen@3.0.0")
    with pytest.raises(NotLoaded) as caught:
        steered(table=table, fleet=fleet)
    assert caught.value.version == "gen@1.0.0"
    beta = replace(BETA, claim=replace(BETA.claim, models=("*",)))
    assert steered(table=table, fleet=fleet, caller=beta).version == "gen@3.0.0"


def test_failover_never_crosses_kinds_and_is_not_for_embedders() -> None:
    fleet = Fleet()
    fleet.update([post("cls@1.0.0", Kind.CLASSIFIER), post("emb@2.0.0", Kind.EMBEDDER)])
    routes = table_record()["routes"] | {
        "chat": {"stable": "gen@1.0.0", "constraints": [{"failover": "cls@1.0.0"}]},
        "team/embed": {"stable": "emb@1.0.0", "constraints": [{"failover": "emb@2.0.0"}]},
    }
    table = parse_table(table_record(routes=routes))
    for alias, operation in (("chat", Operation.CHAT), ("team/embed", Operation.EMBED)):
        with pytest.raises(NotLoaded):
            resolve(alias, operation, ALPHA, table, fleet)


def of_space(version: str, space: str | None) -> Post:
    made = post(version, Kind.EMBEDDER)
    assert made.report.description is not None
    described = replace(made.report.description, embedding_space=space)
    return replace(made, report=replace(made.report, description=described))


@pytest.mark.parametrize(
    ("stable", "canary", "is_split"),
    [("s", "s", True), ("s", "t", False), (None, None, False), ("s", None, False)],
)
def test_an_embedder_is_split_only_inside_one_space(
    stable: str | None, canary: str | None, is_split: bool
) -> None:
    fleet = Fleet()
    fleet.update([of_space("emb@1.0.0", stable), of_space("emb@2.0.0", canary)])
    split = {"stable": "emb@1.0.0", "canary": "emb@2.0.0", "rollout": {"id": "r-1"}}
    routes = table_record()["routes"] | {"team/embed": split}
    table = parse_table(table_record(routes=routes))
    target = resolve("team/embed", Operation.EMBED, ALPHA, table, fleet, ALL, nonce="n")
    expected = ("emb@2.0.0", "canary") if is_split else ("emb@1.0.0", "stable")
    assert (target.version, target.arm) == expected


def test_an_embedder_whose_canary_nobody_has_seen_is_not_split() -> None:
    fleet = Fleet()
    fleet.update([of_space("emb@1.0.0", "s")])
    split = {"stable": "emb@1.0.0", "canary": "emb@2.0.0", "rollout": {"id": "r-1"}}
    table = parse_table(table_record(routes=table_record()["routes"] | {"team/embed": split}))
    target = resolve("team/embed", Operation.EMBED, ALPHA, table, fleet, ALL, nonce="n")
    assert (target.version, target.missing) == ("emb@1.0.0", "")


def test_a_canary_is_nobodys_failover() -> None:
    table = table_of(constraints=[{"failover": "gen@2.0.0"}])
    rolled_back = Steering({"r-1": 0.0}, finished=frozenset({"r-1"}))
    with pytest.raises(NotLoaded):
        steered(rolled_back, table, fleet_of("gen@2.0.0"))


@given(
    turn=st.sampled_from(
        [Turn(), Turn(goes_on=True), Turn(Pin("gen@2.0.0", "r-1")), Turn(refused="invalid")]
    ),
    conversations=st.sampled_from(["turn", "pin"]),
    failover=st.sampled_from([None, "gen@2.0.0", "gen@3.0.0"]),
    ready=st.sets(st.sampled_from(["gen@1.0.0", "gen@2.0.0", "gen@3.0.0"])),
    steering=st.sampled_from(
        [
            Steering({"r-1": 0.0}, finished=frozenset({"r-1"})),
            Steering(finished=frozenset({"r-1"})),
            Steering({"r-1": 0.0}),
            Steering({"r-1": 0.0}, shadows={"r-1": 50.0}),
            Steering(),
        ]
    ),
    key=st.text(max_size=5),
)
def test_after_a_rollback_only_an_evaluator_reaches_the_canary(
    turn: Turn,
    conversations: str,
    failover: str | None,
    ready: set[str],
    steering: Steering,
    key: str,
) -> None:
    plan = {"id": "r-1", "conversations": conversations}
    table = table_of(rollout=plan, constraints=[{"failover": failover}])
    fleet = fleet_of(*ready)
    with contextlib.suppress(NotLoaded):
        target = steered(steering, table, fleet, key=key, nonce="n", turn=turn)
        assert target.version != "gen@2.0.0"
    if "gen@2.0.0" in ready:
        entitled = replace(EVALUATOR, claim=replace(EVALUATOR.claim, models=("chat",)))
        named = resolve("gen@2.0.0", Operation.CHAT, entitled, table, fleet, steering)
        assert (named.version, named.rollout) == ("gen@2.0.0", "")


DEDICATED = table_of(constraints=[{"tenants": ["alpha"], "cell": "b"}])
CELLS = fleet_of("gen@1.0.0", "gen@1.0.0--b", "gen@2.0.0", "gen@2.0.0--b")


def apps(target: Target) -> list[str]:
    return [cell.app for cell in target.pool.cells]


def test_a_dedicated_cell_is_for_its_tenants_alone_and_they_use_no_other() -> None:
    assert apps(steered(table=DEDICATED, fleet=CELLS)) == ["gen@2.0.0--b"]
    assert apps(steered(Steering(), DEDICATED, CELLS)) == ["gen@1.0.0--b"]
    beta = replace(BETA, claim=replace(BETA.claim, models=("*",)))
    assert apps(steered(table=DEDICATED, fleet=CELLS, caller=beta)) == ["gen@2.0.0"]
    with pytest.raises(NotLoaded):
        steered(table=DEDICATED, fleet=fleet_of("gen@1.0.0"))
    with pytest.raises(NotLoaded):
        steered(table=DEDICATED, fleet=fleet_of("gen@1.0.0--b"), caller=beta)


def test_neither_another_alias_nor_a_named_version_leads_into_a_dedicated_cell() -> None:
    record = table_record()
    routes = record["routes"] | {
        "chat": SPLIT | {"constraints": [{"tenants": ["alpha"], "cell": "b"}]},
        "other": {"stable": "gen@1.0.0"},
    }
    table = parse_table(table_record(routes=routes))
    beta = replace(EVALUATOR, claim=replace(EVALUATOR.claim, models=("*",)))
    for alias in ("other", "gen@1.0.0"):
        target = resolve(alias, Operation.CHAT, beta, table, CELLS)
        assert apps(target) == ["gen@1.0.0"]


def test_a_drained_cell_gets_nothing_new() -> None:
    half = Steering(drained=frozenset({"gen@1.0.0"}))
    assert apps(steered(half, fleet=CELLS)) == ["gen@1.0.0--b"]
    whole = Steering(drained=frozenset({"gen@1.0.0", "gen@1.0.0--b"}))
    with pytest.raises(Overloaded) as caught:
        steered(whole, fleet=CELLS)
    # No wish: another replica would be drained just so.
    assert not isinstance(caught.value, NotLoaded)
    assert caught.value.reason == "drained"


def test_a_drained_canary_is_answered_by_stable() -> None:
    steering = Steering({"r-1": 100.0}, frozenset({"gen@2.0.0"}))
    assert steered(steering).version == "gen@1.0.0"


def test_an_evaluator_reaches_a_canary_at_weight_0() -> None:
    entitled = replace(EVALUATOR, claim=replace(EVALUATOR.claim, models=("chat",)))
    target = resolve("gen@2.0.0", Operation.CHAT, entitled, table_of(), BOTH)
    assert (target.version, target.arm, target.rollout) == ("gen@2.0.0", "canary", "")


@given(
    ready=st.sets(st.sampled_from(["gen@1.0.0", "gen@1.0.0--b", "gen@2.0.0", "gen@3.0.0"])),
    drained=st.sets(st.sampled_from(["gen@1.0.0", "gen@2.0.0", "gen@3.0.0"])),
    percent=st.floats(0, 100),
    key=st.text(max_size=5),
)
def test_a_target_is_always_a_version_of_the_route_with_open_cells(
    ready: set[str], drained: set[str], percent: float, key: str
) -> None:
    steering = Steering({"r-1": percent}, frozenset(drained))
    try:
        target = steered(steering, FAILOVER, fleet_of(*ready), key=key, nonce="n")
    except Overloaded:
        return
    assert target.version in FAILOVER.routes["chat"].versions()
    assert apps(target)
    assert set(apps(target)) <= ready - drained
