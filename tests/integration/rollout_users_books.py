"""What the running platform has written down about its users' requests, and who serves them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import psutil
from prometheus_client.parser import text_string_to_metric_families

from cluster.running import run_of
from modelyard.config.demo import OPS_KEY

ADMITTED: Final = "modelyard_quota_admitted_total"
COPIES: Final = "modelyard_shadow_copies_total"


def newest_process(platform: Any, title: str) -> psutil.Process | None:
    """Of those of this platform that carry a title."""
    state = json.loads((platform.home / "run" / "local.json").read_text())
    members = run_of(state["run_id"], state["pid"]).processes()
    found = [one for one in members if title in _title(one)]
    return max(found, key=lambda one: float(one.create_time()), default=None)


def copies(platform: Any, rollout: str) -> list[dict[str, Any]]:
    """The request log's lines of a rollout's shadow copies."""
    lines = [
        json.loads(line)
        for path in (Path(platform.home) / "logs").glob("requests-*.jsonl")
        for line in path.read_text().splitlines(keepends=True)
        if '"purpose"' in line and line.endswith("\n")
    ]
    return [one for one in lines if one["purpose"] == "shadow" and one["rollout"] == rollout]


def used(platform: Any, tenant: str, alias: str) -> Counter[str]:
    """Requests in `modelyard usage`, by version."""
    with platform.client(OPS_KEY) as client:
        answer = client.get("/admin/usage", params={"tenant": tenant}).raise_for_status()
    found: Counter[str] = Counter()
    for row in answer.json()["usage"]:
        if row["model"] == alias:
            found[row["version"]] += row["requests"]
    return found


def admitted(platform: Any) -> int:
    """Requests that the quotas of all tenants have let pass and counted."""
    return _counter(platform, ADMITTED, "kind").total()


def copies_by_end(platform: Any) -> Counter[str]:
    """Shadow copies of all rollouts by what became of them, those that were never sent too."""
    return _counter(platform, COPIES, "reason")


def _counter(platform: Any, name: str, label: str) -> Counter[str]:
    """Of /metrics, summed over all ingresses."""
    with platform.client(OPS_KEY) as client:
        text = client.get("/metrics").raise_for_status().text
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name:
                found[sample.labels[label]] += int(sample.value)
    return found


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it ended while we looked
        return ""
