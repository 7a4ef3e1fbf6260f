"""What resolution did, step by step, for a person who asks why."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from modelyard.config.routes import Constraint, Route
from modelyard.routing.arms import ArmChoice
from modelyard.routing.pool import Pool

ARM_WORDS: Final = {
    "no_rollout": "the route has no rollout",
    "embedder": "an embedder is split only inside one embedding space",
    "not_entitled": "the tenant may not use a canary",
    "not_in_rollout": "the rollout is not for this tenant",
    "no_weight": "control has given the rollout no weight",
    "named": "the caller named the version",
    "rolled_back": "the rollout is over, and its canary gets nobody",
    "promoted": "the rollout is over, and its canary has taken the stable version's place",
    "shadow": "the rollout only copies requests to the canary so far",
    "pin": "its pin says so, whatever the draw",
    "no_pin": "the conversation goes on and brought no pin that can be followed",
}


@dataclass(frozen=True, slots=True)
class Step:
    """name: what was looked at. words: what came of it. facts: the same for a program."""

    name: str
    words: str
    facts: dict[str, Any] = field(default_factory=dict)


class Trail:
    """Steps in order. `resolve` records into it where it is given one, on the path of requests."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(self, name: str, words: str, **facts: Any) -> None:
        self.steps.append(Step(name, words, facts))

    def header(self) -> str:
        """The facts by step, in ASCII and on one line; of the versions tried, the last one's."""
        facts = {step.name: step.facts for step in self.steps}
        return json.dumps(facts, separators=(",", ":"))

    def region(self, region: str) -> None:
        words = f"the tenant's data stays in {region}, where this is" if region else "no residency"
        self.add("region", words, region=region or None)

    def alias(self, alias: str, route: Route) -> None:
        versions = f"stable {route.stable}" + (f", canary {route.canary}" if route.canary else "")
        self.add(
            "alias",
            f"{alias} may be used, and means {versions}",
            alias=alias,
            stable=route.stable,
            canary=route.canary,
        )

    def arm(self, choice: ArmChoice, version: str) -> None:
        why = ARM_WORDS.get(choice.why, "")
        if choice.why == "weight" and choice.bucket is not None and choice.percent is not None:
            drawn = choice.bucket * 100
            side = "below" if drawn < choice.percent else "not below"
            why = f"drew {drawn:.2f}, {side} the {choice.percent:g} % of {choice.rollout}"
        if choice.pin_ignored:
            why += f"; its pin is ignored: {choice.pin_ignored}"
        self.add(
            "arm",
            f"{choice.arm}, {version}: {why}",
            arm=choice.arm,
            version=version,
            why=choice.why,
            rollout=choice.rollout or None,
            bucket=choice.bucket,
            percent=choice.percent,
            **({"pin_ignored": choice.pin_ignored} if choice.pin_ignored else {}),
        )

    def constraint(self, constraint: Constraint | None) -> None:
        if constraint is None:
            return
        parts = [f"only the cell {constraint.cell}"] if constraint.cell else []
        failover = constraint.failover
        parts.append(f"failover to {failover}" if failover else "no failover")
        self.add("constraint", ", ".join(parts), cell=constraint.cell, failover=failover)

    def pool(self, version: str, everywhere: Pool, open_: Pool, *, fits: bool) -> None:
        """One version that was tried: the cells with a ready replica, and those that are open."""
        ready = [cell.app for cell in everywhere.cells]
        taken = [cell.app for cell in open_.cells]
        if not ready:
            words = "no replica is ready"
        elif not fits:
            words = "of another kind"
        elif not taken:
            words = f"closed to this request (drained, or another tenant's): {', '.join(ready)}"
        else:
            words = f"ready in {', '.join(taken)}"
        self.add("pool", f"{version}: {words}", version=version, ready=ready, open=taken)
