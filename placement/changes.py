"""What a deploy of a Serve config would do to each app: Serve says it nowhere before it does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

# Of a deployment: another value of one of these ends its replicas and starts new ones (Ray 2.60,
# DeploymentVersion.requires_actor_restart).
_OF_REPLICAS: Final = (
    "ray_actor_options",
    "placement_group_bundles",
    "placement_group_strategy",
    "placement_group_bundle_label_selector",
    "max_replicas_per_node",
)
_OF_CODE: Final = ("import_path", "runtime_env", "args", "autoscaling_policy")
_NOT_GIVEN: Final[tuple[Any, ...]] = (None, {}, [])


class Effect(StrEnum):
    ADD = "add"
    SAME = "same"
    IN_PLACE = "in place"
    RESTART = "restart"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class Change:
    """keys: what differs, for those that change."""

    app: str
    effect: Effect
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.effect:<9} {self.app}" + (f" ({', '.join(self.keys)})" if self.keys else "")


def changes(
    deployed: Mapping[str, Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]
) -> tuple[Change, ...]:
    """By app: those of the file in its order, then those that it would delete.

    deployed: each app's config as Serve has it, by name. wanted: the file's `applications`.
    """
    names = {app["name"] for app in wanted}
    made = [
        _change(deployed[app["name"]], app)
        if app["name"] in deployed
        else Change(app["name"], Effect.ADD)
        for app in wanted
    ]
    gone = [Change(name, Effect.DELETE) for name in sorted(set(deployed) - names)]
    return (*made, *gone)


def _change(old: Mapping[str, Any], new: Mapping[str, Any]) -> Change:
    restarting = [*_differing(old, new, _OF_CODE), *_policies(old, new)]
    in_place = list(_differing(old, new, ("route_prefix", "logging_config")))
    olds, news = _deployments(old), _deployments(new)
    if olds.keys() != news.keys():
        restarting.append("deployments")
    for name in olds.keys() & news.keys():
        restarting += _differing(olds[name], news[name], _OF_REPLICAS)
        rest = (olds[name].keys() | news[name].keys()) - {*_OF_REPLICAS, "name"}
        in_place += _differing(olds[name], news[name], sorted(rest))
    if restarting:
        return Change(new["name"], Effect.RESTART, tuple(dict.fromkeys(restarting)))
    if in_place:
        return Change(new["name"], Effect.IN_PLACE, tuple(dict.fromkeys(in_place)))
    return Change(new["name"], Effect.SAME)


def _policies(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Part of an app's code version: an autoscaling_config that is added restarts it too."""
    was, becomes = _hashed(old), _hashed(new)
    return (key for key in was if was[key] != becomes[key])


def _hashed(app: Mapping[str, Any]) -> dict[str, list[Any]]:
    deployments = list(app.get("deployments") or ())
    scaling = [one.get("autoscaling_config") for one in deployments]
    routers = [one.get("request_router_config") for one in deployments]
    actors = [one.get("deployment_actors") for one in deployments]
    return {
        "autoscaling_config.policy": [s.get("policy") for s in scaling if isinstance(s, Mapping)],
        "request_router_config": [one for one in routers if isinstance(one, Mapping)],
        "deployment_actors": [one for one in actors if isinstance(one, list)],
    }


def _deployments(app: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {one["name"]: one for one in app.get("deployments") or ()}


def _differing(
    old: Mapping[str, Any], new: Mapping[str, Any], keys: Sequence[str]
) -> Iterator[str]:
    for key in keys:
        one, other = old.get(key), new.get(key)
        # Left out and empty are one for Serve, whose defaults they take.
        if one != other and not (one in _NOT_GIVEN and other in _NOT_GIVEN):
            yield key
