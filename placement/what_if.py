"""What-ifs: a change of the fleet in a few words, planned beside what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import yaml
from pydantic import TypeAdapter, ValidationError

from modelyard.config.fleet import FleetModel, FleetSpec, ModelName
from modelyard.config.fleet_names import machine_names
from modelyard.config.table import describe
from modelyard.contract.errors import ConfigError
from placement.edits import (
    pool_of,
    split,
    swappable,
    with_new_model,
    with_nodes,
    with_replicas,
    without,
)


@dataclass(frozen=True)
class Supposed:
    """The spec after the changes, the memory of the models that it adds, what has gone."""

    spec: FleetSpec
    memory: Mapping[str, int]
    lost: frozenset[str] = field(default_factory=frozenset)


def suppose(start: Supposed, words: str) -> Supposed:
    """One change, `VERB=VALUE`. Raises ConfigError, one sentence."""
    verb, equals, value = words.partition("=")
    if verb not in VERBS or not equals or not value:
        forms = ", ".join(f"{name}={form}" for name, (form, _) in VERBS.items())
        raise ConfigError(f"--what-if {words!r}: write one of {forms}")
    return VERBS[verb][1](start, value)


def _add_node(start: Supposed, value: str) -> Supposed:
    pool, _, count = value.partition(":")
    return replace(start, spec=with_nodes(start.spec, pool, _count(count or "1", value)))


def _remove_node(start: Supposed, value: str) -> Supposed:
    return replace(start, lost=start.lost | {value})


def _lose_zone(start: Supposed, value: str) -> Supposed:
    pools = start.spec.node_pools.items()
    hosts = {host for name, p in pools if p.zone == value for host in machine_names(name, p)}
    if not hosts:
        zones = ", ".join(sorted({pool.zone for _, pool in pools}))
        raise ConfigError(f"{value}: no machine is in that zone: write one of {zones}")
    return replace(start, lost=start.lost | hosts)


def _remove_model(start: Supposed, value: str) -> Supposed:
    return replace(start, spec=without(start.spec, value))


def _replicas(start: Supposed, value: str) -> Supposed:
    version, _, count = value.rpartition(":")
    name, number = split(start.spec, version)
    changed = with_replicas(start.spec, f"{name}@{number}", _count(count, value))
    return replace(start, spec=changed)


def _swappable(start: Supposed, value: str) -> Supposed:
    return replace(start, spec=swappable(start.spec, *value.split("+")))


def _add_model(start: Supposed, value: str) -> Supposed:
    """NAME:memory_gb=54,replicas=1,pool=x: any plain field of a model; `replicas` at most."""
    name, _, fields = value.partition(":")
    try:
        TypeAdapter(ModelName).validate_python(name)
    except ValidationError as error:
        words = "a model's name has a-z, 0-9, and . _ - between them"
        raise ConfigError(f"--what-if add-model={value}: {words}: write another") from error
    given = dict(_field(one, value) for one in fields.split(",")) if fields else {}
    record: dict[str, Any] = {
        "kind": "generator",
        "serve": {"max_ongoing_requests": 32},
        "versions": {"supposed": {"artifact": f"file:///supposed/{name}/supposed"}},
        "scaling": {"max_replicas": given.pop("replicas", 1)},
        **{key: [one] if key == "pool" else one for key, one in given.items()},
    }
    try:
        model = FleetModel.model_validate(record)
    except ValidationError as error:
        lines = "; ".join(describe(error, FleetModel, record))
        raise ConfigError(f"--what-if add-model={value}: {lines}") from error
    for pool in model.pool:
        pool_of(start.spec, pool)
    if model.memory_gb is None:
        raise ConfigError(f"--what-if add-model={value}: say how large it is: memory_gb=GB")
    memory = {**start.memory, f"{name}@supposed": int(model.memory_gb * 1e9)}
    return replace(start, spec=with_new_model(start.spec, name, model), memory=memory)


def _field(words: str, value: str) -> tuple[str, Any]:
    key, equals, text = words.partition("=")
    if not equals:
        raise ConfigError(f"--what-if add-model={value}: {words!r} is no FIELD=VALUE")
    return key, yaml.safe_load(text)


def _count(text: str, value: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 10_000:
        raise ConfigError(f"--what-if {value!r}: end it with a whole number from 1 to 10000")
    return int(text)


VERBS: Final[Mapping[str, tuple[str, Callable[[Supposed, str], Supposed]]]] = {
    "add-node": ("POOL:COUNT", _add_node),
    "remove-node": ("MACHINE", _remove_node),
    "lose-zone": ("ZONE", _lose_zone),
    "add-model": ("NAME:memory_gb=GB,pool=POOL,replicas=N", _add_model),
    "remove-model": ("NAME@VERSION", _remove_model),
    "replicas": ("NAME@VERSION:N", _replicas),
    "swappable": ("NAME+NAME", _swappable),
}
