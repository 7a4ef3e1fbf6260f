"""What the table and the overrides in force allow, bucket by bucket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from modelyard.config.quotas import Limits, Quota
from modelyard.contract.operations import Kind
from modelyard.control.published import Override
from modelyard.quota.bucket import RATE, UNITS

ModelClass = Literal["generator", "small"]
Direction = Literal["input", "output", "requests", "sequences"]
CLASSES: Final[tuple[ModelClass, ...]] = get_args(ModelClass)
_FIELDS: Final[dict[Direction, tuple[str, str]]] = {
    "input": ("input_tokens_per_min", "input_burst_tokens"),
    "output": ("output_tokens_per_min", "output_burst_tokens"),
    "requests": ("requests_per_min", "request_burst"),
}
SMALL: Final = "small."  # an override of "tenant/small.FIELD" changes the small models' own limits


class Key(NamedTuple):
    """Names one bucket."""

    tenant: str
    model_class: ModelClass
    direction: Direction

    @property
    def is_permits(self) -> bool:
        return self.direction == "sequences"


@dataclass(frozen=True, slots=True)
class Figures:
    """rate in thousandths a minute, burst in units. For permits: rate 0, burst their number."""

    rate: int
    burst: int


NOTHING: Final = Figures(0, 0)


def class_of(kind: Kind) -> ModelClass:
    return "generator" if kind is Kind.GENERATOR else "small"


def figures_of(
    quotas: Mapping[str, Quota], overrides: Iterable[Override] = ()
) -> dict[Key, Figures]:
    """Every bucket that has a limit. Without limits of their own, the small models have buckets
    of the generators' figures: the same amount again, not a part of it."""
    changed = _changes(overrides)
    figures: dict[Key, Figures] = {}
    for tenant in quotas.keys() | changed.keys():
        quota = quotas.get(tenant, Quota())
        changes = changed.get(tenant, {})
        own = _limits(quota, {k: v for k, v in changes.items() if not k.startswith(SMALL)})
        of_small = {k.removeprefix(SMALL): v for k, v in changes.items() if k.startswith(SMALL)}
        small = _limits(quota.small, of_small) if quota.small else own | of_small
        for model_class, limits in zip(CLASSES, (own, small), strict=True):
            for direction, one in _of_limits(limits):
                figures[Key(tenant, model_class, direction)] = one
    return figures


def _changes(overrides: Iterable[Override]) -> dict[str, dict[str, int | None]]:
    changed: dict[str, dict[str, int | None]] = {}
    for override in overrides:
        if override.kind == "limit" and override.of_route is None:
            tenant, _, name = override.target.rpartition("/")
            # At least 1: a limit of 0 would turn every request into one that can never be served.
            value = None if override.value is None else max(1, int(override.value))
            changed.setdefault(tenant, {})[name] = value
    return changed


def _limits(limits: Limits, changes: Mapping[str, int | None]) -> dict[str, int | None]:
    return {name: getattr(limits, name) for name in Limits.model_fields} | dict(changes)


def _of_limits(limits: Mapping[str, int | None]) -> Iterable[tuple[Direction, Figures]]:
    for direction, (rate_name, burst_name) in _FIELDS.items():
        if (rate := limits[rate_name]) is not None:
            burst = limits[burst_name]
            yield direction, Figures(rate * RATE, (rate if burst is None else burst) * UNITS)
    if (permits := limits["max_active_sequences"]) is not None:
        yield "sequences", Figures(0, permits)
