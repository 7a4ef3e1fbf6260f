"""The cells in a rendered Serve config: the placement as it was last decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from modelyard.contract.errors import ConfigError
from placement.plan import Cell
from placement.resources import LABEL, Resources

_ONE_OF: Final = re.compile(r"in\(([A-Za-z0-9._,\s-]+)\)")
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def cells_of(config: Mapping[str, Any]) -> tuple[Cell, ...]:
    """In the file's order. Apps without a place, such as one written by hand, are none.

    Raises ConfigError for a selector or a size that no plan of ours has.
    """
    return tuple(_cell(app, deployment) for app, deployment in _placed(config))


def bundles_of(config: Mapping[str, Any]) -> dict[str, Resources]:
    """What a replica of each placed app takes, by the app's name."""
    return {
        app["name"]: dict((deployment.get("placement_group_bundles") or [{}])[0])
        for app, deployment in _placed(config)
    }


def models_of(config: Mapping[str, Any]) -> frozenset[str]:
    """Every app with a model, placed or not."""
    return frozenset(app["name"] for app in _apps(config) if "artifact" in (app.get("args") or {}))


def _apps(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(config.get("applications") or ())


def _placed(config: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for app in _apps(config):
        for deployment in app.get("deployments") or ():
            if any(LABEL in one for one in _selectors(deployment)):
                yield app, deployment


def _selectors(deployment: Mapping[str, Any]) -> list[Mapping[str, str]]:
    return list(deployment.get("placement_group_bundle_label_selector") or ())


def _cell(app: Mapping[str, Any], deployment: Mapping[str, Any]) -> Cell:
    name = app["name"]
    places = _places(name, _selectors(deployment)[0].get(LABEL, ""))
    scaling = deployment.get("autoscaling_config") or {}
    most = scaling.get("max_replicas") or deployment.get("num_replicas") or 1
    least = scaling.get("min_replicas", most)
    if not isinstance(most, int) or most % len(places):
        raise ConfigError(
            f"{name}: max_replicas is {most}, and {len(places)} places cannot have equal parts of "
            "it: plan again with --fresh"
        )
    version, _, own = name.partition("--")
    return Cell(version, own, places, most // len(places), least)


def _places(app: str, words: str) -> tuple[str, ...]:
    several = _ONE_OF.fullmatch(words)
    names = tuple(one.strip() for one in several[1].split(",")) if several else (words,)
    if not all(_NAME.fullmatch(name) for name in names) or len(set(names)) != len(names):
        raise ConfigError(
            f"{app}: the label selector {LABEL}: {words!r} is none that a plan has: write a place, "
            "or in(PLACE,PLACE)"
        )
    return names
