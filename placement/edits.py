"""A fleet spec with one thing changed: what a what-if asks, and what a way out proposes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelyard.config.fleet import FleetModel, FleetSpec, NodePool, Scaling, Spread
from modelyard.config.fleet_names import machine_names
from modelyard.contract.errors import ConfigError


def with_nodes(spec: FleetSpec, pool: str, more: int) -> FleetSpec:
    """With so many machines more in a pool, named after those that are there."""
    own = pool_of(spec, pool)
    names = own.names
    if names:
        taken = {one for name, each in spec.node_pools.items() for one in machine_names(name, each)}
        new = (f"{pool}-new{index}" for index in range(len(taken) + more))
        names += tuple([name for name in new if name not in taken][:more])
    return _with_pool(
        spec, pool, own.model_copy(update={"nodes": own.nodes + more, "names": names})
    )


def with_slices(spec: FleetSpec, pool: str, slices: int | None) -> FleetSpec:
    return _with_pool(spec, pool, pool_of(spec, pool).model_copy(update={"slices": slices}))


def with_model(spec: FleetSpec, name: str, **changes: Any) -> FleetSpec:
    """changes: fields of FleetModel, whole ones."""
    return _with_models(spec, {name: model_of(spec, name).model_copy(update=changes)})


def swappable(spec: FleetSpec, *names: str) -> FleetSpec:
    for name in names:
        model = model_of(spec, name)
        versions = {
            number: one.model_copy(update={"scaling": None})
            for number, one in model.versions.items()
        }
        scaling = model.scaling.model_copy(update={"min_replicas": 0, "max_replicas": 1})
        spec = with_model(
            spec, name, swappable=True, spread=Spread(), scaling=scaling, versions=versions
        )
    return spec


def with_replicas(spec: FleetSpec, version: str, replicas: int) -> FleetSpec:
    """At most so many of a version; those that always run are lowered with them."""
    name, number = split(spec, version)
    model = model_of(spec, name)
    old = model.scaling_of(number)
    least = min(old.min_replicas, replicas)
    scaling = old.model_copy(update={"min_replicas": least, "max_replicas": replicas})
    return _with_version_scaling(spec, name, number, scaling)


def without(spec: FleetSpec, version: str) -> FleetSpec:
    """Without a version, or without a model where only its name is given."""
    name, _, number = version.partition("@")
    model = model_of(spec, name)
    versions = {key: one for key, one in model.versions.items() if number and key != number}
    if number and len(versions) == len(model.versions):
        raise ConfigError(f"{version}: the model {name} has no such version: check its number")
    if versions:
        return with_model(spec, name, versions=versions)
    models = {key: one for key, one in spec.models.items() if key != name}
    return spec.model_copy(update={"models": models})


def with_new_model(spec: FleetSpec, name: str, model: FleetModel) -> FleetSpec:
    if name in spec.models:
        raise ConfigError(f"{name}: the fleet has a model of that name: give the new one another")
    return _with_models(spec, {name: model})


def split(spec: FleetSpec, version: str) -> tuple[str, str]:
    """A model's name and a version's number, which may be left out where there is one."""
    name, _, number = version.partition("@")
    versions = model_of(spec, name).versions
    if not number and len(versions) == 1:
        return name, next(iter(versions))
    if number not in versions:
        known = ", ".join(f"{name}@{one}" for one in versions)
        raise ConfigError(f"{version}: no such version: write one of {known}")
    return name, number


def pool_of(spec: FleetSpec, name: str) -> NodePool:
    if name not in spec.node_pools:
        known = ", ".join(spec.node_pools)
        raise ConfigError(f"{name}: no such pool in node_pools: write one of {known}")
    return spec.node_pools[name]


def model_of(spec: FleetSpec, name: str) -> FleetModel:
    if name not in spec.models:
        known = ", ".join(spec.models)
        raise ConfigError(f"{name}: no such model in the fleet: write one of {known}")
    return spec.models[name]


def _with_version_scaling(spec: FleetSpec, name: str, number: str, scaling: Scaling) -> FleetSpec:
    versions = dict(spec.models[name].versions)
    versions[number] = versions[number].model_copy(update={"scaling": scaling})
    return with_model(spec, name, versions=versions)


def _with_pool(spec: FleetSpec, name: str, pool: NodePool) -> FleetSpec:
    return spec.model_copy(update={"node_pools": {**spec.node_pools, name: pool}})


def _with_models(spec: FleetSpec, models: Mapping[str, FleetModel]) -> FleetSpec:
    return spec.model_copy(update={"models": {**spec.models, **models}})
