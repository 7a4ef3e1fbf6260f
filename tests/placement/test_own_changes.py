"""What a move must not deploy with it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from placement.changes import Effect
from placement.own_changes import others


def app(name: str, least: int = 1, most: int = 1, **of_deployment: Any) -> dict[str, Any]:
    scaling = {"min_replicas": least, "max_replicas": most, "upscale_delay_s": 3.0}
    if least == 0:
        scaling["downscale_to_zero_delay_s"] = 60.0
    deployment = {"name": "M", "autoscaling_config": scaling, **of_deployment}
    return {"name": name, "import_path": "x:y", "deployments": [deployment]}


INGRESS: dict[str, Any] = {
    "name": "ingress",
    "deployments": [{"name": "I", "user_config": {"routes": {}}}],
}
DEPLOYED: dict[str, Any] = {one["name"]: one for one in (INGRESS, app("m@1"), app("m@1--b", 0))}


def found(wanted: list[dict[str, Any]], arriving: str = "", leaving: str = "") -> list[Any]:
    made = others(DEPLOYED, wanted, arriving={arriving} - {""}, leaving={leaving} - {""})
    return [(one.app, one.effect) for one in made]


def test_the_moves_own_apps_and_how_many_replicas_there_are_is_all_that_may_change() -> None:
    wanted = [INGRESS, app("m@1", 0, 2), app("m@1--c")]
    assert found(wanted, "m@1--c", "m@1--b") == []
    assert found(wanted) == [("m@1--c", Effect.ADD), ("m@1--b", Effect.DELETE)]


def test_an_edited_table_is_not_the_moves() -> None:
    edited = deepcopy(INGRESS)
    edited["deployments"][0]["user_config"] = {"routes": {"m": 1}}
    assert found([edited, app("m@1"), app("m@1--b", 0)]) == [("ingress", Effect.IN_PLACE)]


def test_another_edit_of_an_app_is_not_the_moves() -> None:
    slower = app("m@1", upscale_delay_s=1)
    assert found([INGRESS, slower, app("m@1--b", 0)]) == [("m@1", Effect.IN_PLACE)]
    other = app("m@1") | {"args": {"artifact": "file:///m/2"}}
    assert found([INGRESS, other, app("m@1--b", 0)]) == [("m@1", Effect.RESTART)]
    delayed = app("m@1")
    delayed["deployments"][0]["autoscaling_config"]["upscale_delay_s"] = 9.0
    assert found([INGRESS, delayed, app("m@1--b", 0)]) == [("m@1", Effect.IN_PLACE)]
