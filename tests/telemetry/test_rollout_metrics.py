"""What control's own process exports of its rollouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from modelyard.control.verbs import Command
from modelyard.telemetry.rollout_metrics import RolloutMetrics
from modelyard.testing.control_world import ControlWorld
from modelyard.testing.scripted_evidence import outcome

ID = "gen-1.1.0"


def samples(collector: RolloutMetrics) -> Iterator[tuple[str, dict[str, str], float]]:
    text = generate_latest(collector).decode()
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            yield one.name.removeprefix("modelyard_"), one.labels, one.value


async def test_phases_gates_and_outcomes_are_exported_as_of_the_last_second() -> None:
    world = ControlWorld()
    control = await world.started()
    metrics = RolloutMetrics(lambda: control.rollouts.shown)
    assert list(samples(metrics)) == [
        ("rollout_phase", {"model": "chat", "rollout": ID, "phase": "Pending"}, 1.0)
    ]
    await control.admin(Command("start_rollout", {"rollout": ID, "reason": "x"}, "ops-1", "r-1"))
    await control.tick(world.reading())
    refused = replace(outcome(ID), code="invalid_request", refused=True)
    seen = (outcome(ID), outcome(ID, failed=True), refused, outcome("r-unknown"))
    await world.report(control, *seen)
    await control.tick(world.reading())
    found = list(samples(metrics))
    labels = {"model": "chat", "rollout": ID}
    assert ("rollout_phase", labels | {"phase": "Holding"}, 1.0) in found
    assert ("rollout_gate_evalue", labels | {"gate": "limit_errors"}, 0.0) in found
    assert ("rollout_gate_failing", labels | {"gate": "tokens"}, 0.0) in found
    outcomes = [(one[1], one[2]) for one in found if one[0] == "rollout_outcomes_total"]
    assert outcomes == [
        ({"model": "chat", "arm": "canary", "kind": "ok"}, 1.0),
        ({"model": "chat", "arm": "canary", "kind": "failed"}, 1.0),
        ({"model": "chat", "arm": "canary", "kind": "refused"}, 1.0),
    ]
