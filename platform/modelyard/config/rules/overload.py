"""Rules about queues: what may wait, in which order, and what is given instead of a refusal."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.config.checked import Checked
from modelyard.config.explain import did_you_mean
from modelyard.config.faults import Fault, Severity, YamlPath
from modelyard.config.routes import Route
from modelyard.contract.operations import Kind


def queue_holds_a_request(checked: Checked) -> Iterator[Fault]:
    for alias, route in _of_kind(checked, Kind.GENERATOR):
        tokens, cap = route.limits.max_queued_tokens, route.limits.max_output_tokens
        if tokens is not None and tokens <= cap:
            yield checked.fault(
                (*_route(checked, alias), "limits", "max_queued_tokens"),
                f"a request for max_output_tokens {cap} could never wait: set a multiple of that",
            )


def output_can_be_capped(checked: Checked) -> Iterator[Fault]:
    for alias, route in checked.all_routes:
        cap, most = route.overload.cap_output_tokens, route.limits.max_output_tokens
        path: YamlPath = (*_route(checked, alias), "overload", "cap_output_tokens")
        kind = _kinds(checked).get(route.stable)
        if cap is None or kind is None:
            continue
        if kind is not Kind.GENERATOR:
            yield checked.fault(
                path, f"{route.stable} is a {kind}, with no output to cap: remove it"
            )
        elif cap >= most:
            yield checked.fault(
                path, f"not below limits.max_output_tokens {most}, so it caps nothing: lower it"
            )


def queue_order_is_of_use(checked: Checked) -> Iterator[Fault]:
    """Lengths are predicted of generators, and a version has one queue, whichever alias leads."""
    table = checked.table
    for alias, route in checked.all_routes if table is not None else ():
        overload = route.overload
        kind = _kinds(checked).get(route.stable)
        path: YamlPath = (*_route(checked, alias), "overload", "order")
        if overload.order == "shortest" and kind not in (None, Kind.GENERATOR):
            yield checked.fault(
                path,
                f"{route.stable} is a {kind}, and only generators' answers differ in length: "
                "remove it",
            )
        elif table is not None:
            queue = table.overload_of(route.stable)
            if (queue.order, queue.age_cap_s) != (overload.order, overload.age_cap_s):
                yield checked.fault(
                    path,
                    f"another alias of {route.stable} has `order: {queue.order}` and `age_cap_s: "
                    f"{queue.age_cap_s:g}`, and a version has one queue: write the same in both",
                )


def tiers_are_of_tenants(checked: Checked) -> Iterator[Fault]:
    """A tier misspelt on either side would silently weigh 1.

    Warnings, because either may be meant: a tier before its first tenant, and one that weighs 1.
    """
    table = checked.table
    if table is None:
        return
    used = {tenant.tier for tenant in table.tenants.values()}
    for tier in (tier for tier in table.tiers if tier not in used):
        near = did_you_mean(tier, used) or "remove it, or give it to a tenant"
        yield checked.fault(
            (*checked.table_path, "tiers", tier),
            f"no tenant has this tier: {near}",
            Severity.WARNING,
        )
    for name, tenant in table.tenants.items():
        near = did_you_mean(tenant.tier, table.tiers)
        if tenant.tier not in table.tiers and near:
            yield checked.fault(
                (*checked.table_path, "tenants", name, "tier"),
                f"not in tiers, so its weight is 1: {near} If not, list it there with its weight",
                Severity.WARNING,
            )


def _route(checked: Checked, alias: str) -> YamlPath:
    return (*checked.table_path, "routes", alias)


def _kinds(checked: Checked) -> dict[str, Kind | None]:
    return {app.version: app.shell.kind for app in checked.models if app.shell is not None}


def _of_kind(checked: Checked, kind: Kind) -> Iterator[tuple[str, Route]]:
    kinds = _kinds(checked)
    return (item for item in checked.all_routes if kinds.get(item[1].stable) is kind)
