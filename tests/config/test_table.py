import copy
from typing import Any

import pytest

from modelyard.config.table import Table, parse_table
from modelyard.contract.errors import ConfigError

RECORD: dict[str, Any] = {
    "schema": "modelyard/table/v1",
    "routes": {"chat": {"stable": "m@1.0.0"}, "embed": {"stable": "e@1.0.0"}},
    "tenants": {"a": {"models": ["chat"]}, "b": {"models": ["*"]}},
    "keys": [{"id": "a-1", "tenant": "a", "sha256": "0" * 64}],
}


def table_with(**changes: Any) -> Table:
    return parse_table(copy.deepcopy(RECORD) | changes)


def fault_of(**changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        table_with(**changes)
    return str(caught.value)


def test_the_digest_depends_on_content_and_not_on_the_order_of_keys() -> None:
    turned = {key: RECORD[key] for key in reversed(RECORD)}
    assert parse_table(turned).digest() == parse_table(RECORD).digest()
    assert table_with(max_body_bytes=2048).digest() != parse_table(RECORD).digest()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"routes": {"chat": {"stabel": "m@1.0.0"}}, "tenants": {}, "keys": []},
            "user_config: routes.chat.stable: required and missing: add it\n"
            "user_config: routes.chat.stabel: 'm@1.0.0': unknown key: did you mean stable?",
        ),
        (
            {"keys": [{"id": "a-1", "tenant": "gone", "sha256": "0" * 64}]},
            "names the tenant 'gone', which is not in tenants: add it",
        ),
        ({"tenants": {"a": {"models": ["gone"]}}}, "lists the model 'gone'"),
        ({"keys": [{"id": "a-1", "sha256": "0" * 64}]}, "may invoke but names no tenant"),
        ({"keys": [RECORD["keys"][0]] * 2}, "two keys have the id 'a-1'"),
        (
            {"keys": [RECORD["keys"][0], RECORD["keys"][0] | {"id": "a-2"}]},
            "keys 'a-1' and 'a-2' have one sha256",
        ),
        ({"keys": [RECORD["keys"][0] | {"roles": []}]}, "key 'a-1' has no roles"),
        (
            {"keys": [RECORD["keys"][0] | {"roles": ["evaluate"]}]},
            "may evaluate but not invoke, so it could call nothing: add invoke",
        ),
        ({"schema": "modelyard/table/v9"}, "schema: 'modelyard/table/v9': Input should be"),
        ({"routes": {}}, "routes: Dictionary should have at least 1 item"),
    ],
)
def test_a_wrong_table_says_where_and_what_to_do(changes: dict[str, Any], expected: str) -> None:
    assert expected in fault_of(**changes)


def test_a_tier_that_is_not_listed_weighs_one() -> None:
    table = table_with(tiers={"paid": {"weight": 4}, "free": {}})
    assert [table.weight_of(tier) for tier in ("paid", "free", "other")] == [4, 1, 1]


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ({"paid": {"wieght": 4}}, "tiers.paid.wieght: 4: unknown key: did you mean weight?"),
        ({"paid": {"weight": 0}}, "tiers.paid.weight: 0: Input should be greater than"),
        ({"paid": {"weight": 1e9}}, "tiers.paid.weight: 1000000000.0: Input should be less than"),
        ({"paid": {"weight": "much"}}, "tiers.paid.weight: 'much': Input should be a valid number"),
        ({"Paid": {}}, "tiers.Paid: String should match pattern"),
        ({"paid": 4}, "tiers.paid: 4: must be a mapping"),
    ],
)
def test_a_wrong_tier_is_named(tiers: dict[str, Any], expected: str) -> None:
    assert expected in fault_of(tiers=tiers)


def test_a_queue_is_ordered_as_the_route_says_whose_stable_version_it_is() -> None:
    shortest = {"order": "shortest", "age_cap_s": 1.0}
    table = table_with(
        routes={
            "next": {"stable": "m@2.0.0", "canary": "m@3.0.0"},
            "chat": {"stable": "m@1.0.0", "canary": "m@2.0.0", "overload": shortest},
        },
        tenants={},
        keys=[],
    )
    orders = {f"m@{one}.0.0": table.overload_of(f"m@{one}.0.0") for one in (1, 2, 3, 4)}
    assert {version: one.order for version, one in orders.items()} == {
        "m@1.0.0": "shortest",
        "m@2.0.0": "deadline",
        "m@3.0.0": "deadline",
        "m@4.0.0": "deadline",
    }
    assert orders["m@1.0.0"].age_cap_s == 1.0


def test_a_key_pasted_in_place_of_its_hash_is_not_repeated() -> None:
    secret = "my_a-1_this-must-not-be-printed"
    assert secret not in fault_of(keys=[{"id": "a-1", "tenant": "a", "sha256": secret}])
