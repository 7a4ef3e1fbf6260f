import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.table import Table, parse_table
from modelyard.contract.errors import Forbidden, InvalidRequest, NotFound, Overloaded, RequestError
from modelyard.contract.operations import Kind, Operation
from modelyard.routing.fleet import Fleet
from modelyard.routing.pool import Cell, Pool
from modelyard.routing.resolve import Target, resolve, visible_aliases
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
