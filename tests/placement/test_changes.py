"""What a deploy would do to each app, held against the code version that Serve computes itself."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.serve._private.deploy_utils import get_app_code_version
from ray.serve.schema import ServeApplicationSchema

from placement.changes import Change, Effect, changes

TEXT = (Path(__file__).parents[2] / "configs" / "local.serve.yaml").read_text()
GENERATOR = "smollm2-135m-instruct@1.0.0"


def applications() -> list[dict[str, Any]]:
    record = yaml.safe_load(TEXT)
    return copy.deepcopy(list(record["applications"]))  # of one anchor, two copies


def generator(apps: list[dict[str, Any]]) -> dict[str, Any]:
    return next(app for app in apps if app["name"] == GENERATOR)


def change(edit: Callable[[dict[str, Any]], object]) -> tuple[Change, bool]:
    """Of the generator, and whether Serve's code version says restart."""
    old, new = applications(), applications()
    edit(generator(new))
    deployed = {app["name"]: app for app in old}
    found = {one.app: one for one in changes(deployed, new)}
    rest = {name: one.effect for name, one in found.items() if name != GENERATOR}
    assert set(rest.values()) == {Effect.SAME}
    versions = [
        get_app_code_version(ServeApplicationSchema.model_validate(generator(apps)))
        for apps in (old, new)
    ]
    return found[GENERATOR], versions[0] != versions[1]


def first(app: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = app["deployments"][0]
    return found


def test_the_same_file_changes_nothing() -> None:
    deployed = {app["name"]: app for app in applications()}
    assert {one.effect for one in changes(deployed, applications())} == {Effect.SAME}


def test_apps_that_come_and_go_are_named_deletes_last() -> None:
    deployed = {app["name"]: app for app in applications()}
    deployed["old@1.0.0"] = deployed.pop("support-intent@1.0.0") | {"name": "old@1.0.0"}
    found = changes(deployed, applications())
    assert Change("support-intent@1.0.0", Effect.ADD) in found
    assert found[-1] == Change("old@1.0.0", Effect.DELETE)
    assert str(found[-1]) == "DELETE    old@1.0.0"


@pytest.mark.parametrize(
    ("edit", "key"),
    [
        (lambda app: app["args"].update(artifact="file:///x"), "args"),
        (lambda app: app.update(runtime_env={"env_vars": {"A": "b"}}), "runtime_env"),
        (lambda app: app.update(import_path="deployments.embedder:app"), "import_path"),
        (
            lambda app: first(app)["autoscaling_config"].pop("policy"),
            "autoscaling_config.policy",
        ),
        (lambda app: first(app).pop("autoscaling_config"), "autoscaling_config.policy"),
        (
            lambda app: first(app).update(request_router_config={"max_backoff_s": 1}),
            "request_router_config",
        ),
    ],
)
def test_what_is_in_serves_code_version_restarts(
    edit: Callable[[dict[str, Any]], object], key: str
) -> None:
    found, serves = change(edit)
    assert serves
    assert (found.effect, found.keys[0]) == (Effect.RESTART, key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ray_actor_options", {"num_cpus": 2}),
        ("placement_group_bundles", [{"CPU": 1}]),
        ("placement_group_strategy", "STRICT_PACK"),
        ("max_replicas_per_node", 1),
    ],
)
def test_what_a_replica_is_made_with_restarts_beside_the_code_version(key: str, value: Any) -> None:
    found, serves = change(lambda app: first(app).update({key: value}))
    assert not serves
    assert found == Change(GENERATOR, Effect.RESTART, (key,))


def test_another_place_restarts() -> None:
    def at(place: str) -> dict[str, Any]:
        selector = [{"modelyard/place": place}]
        app = generator(applications())
        first(app).update(placement_group_bundle_label_selector=selector)
        return app

    (found,) = changes({GENERATOR: at("d1")}, [at("d2")])
    key = "placement_group_bundle_label_selector"
    assert found == Change(GENERATOR, Effect.RESTART, (key,))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_ongoing_requests", 41),
        ("graceful_shutdown_timeout_s", 91),
        ("user_config", {"a": 1}),
        ("max_surge_percent", 0),
    ],
)
def test_the_rest_is_taken_over_while_it_runs(key: str, value: Any) -> None:
    found, serves = change(lambda app: first(app).update({key: value}))
    assert not serves
    assert found == Change(GENERATOR, Effect.IN_PLACE, (key,))


def test_the_numbers_of_autoscaling_are_taken_over_while_it_runs() -> None:
    found, serves = change(lambda app: first(app)["autoscaling_config"].update(max_replicas=3))
    assert not serves
    assert found == Change(GENERATOR, Effect.IN_PLACE, ("autoscaling_config",))


def test_left_out_and_empty_are_one() -> None:
    found, serves = change(lambda app: app.update(runtime_env={}))
    assert not serves
    assert found.effect is Effect.SAME
