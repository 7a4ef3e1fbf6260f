"""Control's state as an operator sees it: plain data, times as seconds left or ago."""

from __future__ import annotations

from typing import Any

from modelyard.control.last_table import LastTable
from modelyard.control.reading import Reading
from modelyard.control.state import State
from modelyard.lifecycle.drain import DrainOrder, drain_order
from modelyard.lifecycle.silence import ALIVE_S, is_there


def status(state: State, tables: LastTable, now: float) -> dict[str, Any]:
    return {
        "epoch": state.epoch,
        "revision": state.revision,
        "held": state.held,
        "table_digest": tables.digest,
        "table_valid": tables.table is not None and not tables.error,
        "table_error": tables.error,
        "rollouts": [
            {
                "id": rollout,
                "phase": state.rollouts[rollout].phase if rollout in state.rollouts else None,
                "percent": weight.percent,
                "finished": weight.finished,
                "author": weight.author,
                "reason": weight.reason,
                "ago_s": round(now - weight.at, 1),
            }
            for rollout, weight in sorted(state.weights.items())
        ],
        "overrides": overrides(state, now),
        "revoked_keys": sorted(state.revoked),
    }


def overrides(state: State, now: float) -> list[dict[str, Any]]:
    return [
        {
            "id": one.id,
            "kind": one.kind,
            "target": one.target,
            "value": one.value,
            "author": one.author,
            "reason": one.reason,
            "expires_in_s": round(one.expires_at - now, 1),
        }
        for one in state.live_overrides(now)
    ]


def keys(state: State, tables: LastTable) -> list[dict[str, Any]]:
    """The table's keys without their hashes, then revoked ids that the table no longer has."""
    listed = {} if tables.table is None else {key.id: key for key in tables.table.keys}
    records: list[dict[str, Any]] = [
        {
            "id": key.id,
            "tenant": key.tenant,
            "roles": list(key.roles),
            "expires": None if key.expires is None else key.expires.isoformat(),
            "revoked": key.id in state.revoked,
        }
        for key in listed.values()
    ]
    records += [
        {"id": identifier, "tenant": None, "roles": [], "expires": None, "revoked": True}
        for identifier in sorted(state.revoked)
        if identifier not in listed
    ]
    for record in records:
        if (revocation := state.revoked.get(record["id"])) is not None:
            record["revoked_by"] = revocation.author
            record["reason"] = revocation.reason
    return records


def replicas(reading: Reading) -> dict[str, Any]:
    """Every replica of a model by app, as it last posted, and what scaling decided for each app."""
    posts = sorted(reading.posts, key=lambda post: (post.report.app, post.report.replica))
    return {
        "replicas": [
            {
                "replica": post.report.replica,
                "app": post.report.app,
                "node": post.report.node,
                "phase": post.report.phase,
                "phase_s": round(post.report.phase_s + post.age_s, 1),
                "ready": post.report.ready and post.age_s < ALIVE_S,
                "ongoing": post.report.ongoing,
                "heard_s": round(post.age_s, 1),
                "cause": post.report.cause,
                "drained": _words(drain_order(reading.published, post.report.replica)),
            }
            for post in posts
            if is_there(post.report.phase, post.age_s)
        ],
        "scaling": {
            one.app: {"replicas": one.replicas, "why": one.why} for one in reading.decisions
        },
    }


def _words(order: DrainOrder | None) -> str | None:
    return None if order is None else str(order)
