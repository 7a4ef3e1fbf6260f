"""Rules about rollouts: that somebody meets the canary, that there is evidence, and who judges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from modelyard.config.checked import Checked
from modelyard.config.explain import did_you_mean
from modelyard.config.faults import Fault, Severity, YamlPath
from modelyard.config.rollout import Gates, Rollout
from modelyard.config.routes import Route
from modelyard.config.tenants import Tenant
from modelyard.contract.operations import Kind
from modelyard.rollout.noninferiority import judgements_needed

# Of ln(output tokens) in a public trace of chats: the standard error of a mean is this / sqrt(n).
LOG_TOKENS_SD: Final = 0.9
# A p95 is about the slowest twentieth, of which a handful should be there.
LATENCY_SAMPLES: Final = 100
# (1.645 + 0.842)^2: one-sided 5 %, power 80 %; times the share of pairs on which arms differ.
_POWER: Final = 6.18
_DISCORDANT: Final = 0.10


def rollout_ids_are_unique(checked: Checked) -> Iterator[Fault]:
    """The weight is the id's: two routes would share it, and their evidence."""
    first: dict[str, str] = {}
    for alias, _, plan in _rollouts(checked):
        if plan.id in first:
            yield checked.fault(
                (*_path(checked, alias), "id"),
                f"the rollout of {first[plan.id]} has this id too: give each its own",
            )
        first.setdefault(plan.id, alias)


def somebody_meets_the_canary(checked: Checked) -> Iterator[Fault]:
    for alias, _, plan in _rollouts(checked):
        if not any("canary" in tenant.arms for tenant in _tenants(checked, alias, plan)):
            listed = plan.tenants is not None
            yield checked.fault(
                (*_path(checked, alias), *(("tenants",) if listed else ())),
                f"no tenant {'of these ' if listed else ''}may use {alias} and has the arm canary, "
                "so there will be no evidence: add one, or give them `arms: [stable, canary]`",
                Severity.WARNING,
            )


def something_is_compared(checked: Checked) -> Iterator[Fault]:
    for alias, _, plan in _rollouts(checked):
        path = _path(checked, alias)
        if len(plan.steps_percent) == 1 and not plan.shadow_percent:
            yield checked.fault(
                (*path, "steps_percent"),
                "at 100 % nobody is left to compare with: add a step below it, or shadow_percent",
                Severity.WARNING,
            )
        if plan.gates == Gates(errors=None, ttft=None, e2e=None, tokens=None):
            yield checked.fault(
                (*path, "gates"),
                "every gate is off, so nothing is compared: leave one on",
                Severity.WARNING,
            )


def steps_can_be_judged(checked: Checked) -> Iterator[Fault]:
    """A step that ends before anything can be seen promotes whatever the canary is."""
    for alias, route, plan in _rollouts(checked):
        path = _path(checked, alias)
        kind = _kind(checked, route.stable)
        needed = max(
            (samples_for(plan.gates, generates=kind in (None, Kind.GENERATOR))), default=(0, "")
        )
        if plan.min_samples < needed[0]:
            yield checked.fault(
                (*path, "min_samples"),
                f"{plan.min_samples} requests say nothing about {needed[1]}: set at least "
                f"{needed[0]}",
                Severity.WARNING,
            )
        if plan.hold_s < route.deadlines.total_s:
            yield checked.fault(
                (*path, "hold_s"),
                f"a step of {plan.hold_s:g} s may end before its slowest requests: set at least "
                f"deadlines.total_s, {route.deadlines.total_s:g}",
                Severity.WARNING,
            )


def quality_can_be_decided(checked: Checked) -> Iterator[Fault]:
    for alias, _, plan in _rollouts(checked):
        quality = plan.gates.quality
        if quality is None:
            continue
        least = judgements_needed(quality.margin_points)
        if quality.judgements < least:
            yield checked.fault(
                (*_path(checked, alias), "gates", "quality", "judgements"),
                f"too few for a margin of {quality.margin_points:g} points: not even a canary "
                f"whose every answer is as good could pass; set at least {least}",
            )
            continue
        needed = math.ceil(_POWER * _DISCORDANT / (quality.margin_points / 100) ** 2)
        if quality.judgements < needed:
            yield checked.fault(
                (*_path(checked, alias), "gates", "quality", "judgements"),
                f"too few for a margin of {quality.margin_points:g} points, even in pairs: an "
                f"equal canary would often be held; set at least {needed}, or a larger margin",
                Severity.WARNING,
            )


def judges_are_other_generators(checked: Checked) -> Iterator[Fault]:
    table = checked.table
    for alias, route, plan in _rollouts(checked):
        judge = plan.judge.model if plan.judge is not None else None
        if judge is None or table is None:
            continue
        path: YamlPath = (*_path(checked, alias), "judge", "model")
        other = table.routes.get(judge)
        if other is None:
            near = did_you_mean(judge, table.routes) or "name an alias of routes"
            yield checked.fault(path, f"no route has this name: {near}")
        elif judge == alias or other.stable in (route.stable, route.canary):
            yield checked.fault(path, "a model would judge its own answers: name another")
        elif (kind := _kind(checked, other.stable)) not in (None, Kind.GENERATOR):
            yield checked.fault(
                path, f"{other.stable} is a {kind}, and a judge writes: name another"
            )


def judge_has_something_to_read(checked: Checked) -> Iterator[Fault]:
    for alias, _, plan in _rollouts(checked):
        if plan.judge is None:
            continue
        path: YamlPath = (*_path(checked, alias), "judge")
        if plan.gates.quality is None:
            yield checked.fault(
                path, "no gate looks at what it says: add gates.quality", Severity.WARNING
            )
        if not any(tenant.judged for tenant in _tenants(checked, alias, plan)):
            yield checked.fault(
                path,
                f"no tenant of {alias} agreed, so it would read nothing: set `judged: true` for "
                "those who did",
                Severity.WARNING,
            )


def samples_for(gates: Gates, *, generates: bool) -> list[tuple[int, str]]:
    """How many requests each gate needs at least, and what it is about.

    errors: so many that one failure more than allowed is to be expected. tokens: that two standard
    errors of the mean logarithm are within the margin.
    """
    needs = []
    if gates.errors is not None:
        margin = gates.errors.margin_points
        needs.append((math.ceil(100 / margin), f"{margin:g} points of errors"))
    if gates.e2e is not None or (generates and gates.ttft is not None):
        needs.append((LATENCY_SAMPLES, "the slowest 5 %"))
    if generates and gates.tokens is not None:
        margin = gates.tokens.margin_percent
        within = math.log1p(margin / 100)
        needs.append(
            (math.ceil((2 * LOG_TOKENS_SD / within) ** 2), f"{margin:g} % more tokens an answer")
        )
    return needs


def _rollouts(checked: Checked) -> Iterator[tuple[str, Route, Rollout]]:
    for alias, route in checked.all_routes:
        if route.rollout is not None:
            yield alias, route, route.rollout


def _tenants(checked: Checked, alias: str, plan: Rollout) -> list[Tenant]:
    """Those who may use the alias and are in the rollout."""
    table = checked.table
    named = table.tenants.items() if table is not None else ()
    return [
        tenant
        for name, tenant in named
        if (plan.tenants is None or name in plan.tenants)
        and ("*" in tenant.models or alias in tenant.models)
    ]


def _path(checked: Checked, alias: str) -> YamlPath:
    return (*checked.table_path, "routes", alias, "rollout")


def _kind(checked: Checked, version: str) -> Kind | None:
    return next(
        (app.shell.kind for app in checked.models if app.version == version and app.shell), None
    )
