from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry

from modelyard.config.table import parse_table
from modelyard.control.ingress_post import IngressPost
from modelyard.control.published import Published
from modelyard.control.reading import Decided, IngressEntry, Reading
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post
from modelyard.lifecycle.restarts import Restart
from modelyard.routing.pool import Cell
from modelyard.telemetry.expected import model_cells, unheard
from modelyard.telemetry.fleet_metrics import FleetMetrics
from modelyard.testing.in_memory import post, table_record

NOBODY: dict[tuple[str, str], bool] = {}


def named(replica: str, app: str = "gen@1.0.0", **options: Any) -> Post:
    made = post(app, **options)
    return Post(replace(made.report, replica=replica), made.age_s)


def reading(*posts: Post, **changes: Any) -> Reading:
    ingresses = tuple(
        IngressEntry(IngressPost(name, "d1", True, in_flight=(("gen@1.0.0", 3),)), 0.1)
        for name in ("i1", "i2")
    )
    empty = Reading(posts, ingresses, (), None, None, 42.0)
    return replace(empty, **changes)


def value(metrics: FleetMetrics, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(metrics)
    return registry.get_sample_value(f"modelyard_{name}", labels)


def test_replicas_are_counted_by_version_and_shown_by_phase() -> None:
    fleet = FleetMetrics(
        reading(
            named("r1"),
            named("r2", "gen@1.0.0--b"),
            named("r3", phase=Phase.LOADING, age_s=9.0),
            named("killed", phase=Phase.LOADING, age_s=300.0),
            named("gone", age_s=9.0),
        ),
        None,
        NOBODY,
    )
    assert value(fleet, "replicas_ready", version="gen@1.0.0") == 2
    labels = {"version": "gen@1.0.0", "app": "gen@1.0.0"}
    assert value(fleet, "replica_phase", **labels, replica="r3", phase="Loading") == 1
    assert value(fleet, "replica_phase", **labels, replica="gone", phase="Ready") is None
    assert value(fleet, "replica_phase", **labels, replica="killed", phase="Loading") is None
    assert value(fleet, "startup_phase_seconds", **labels, replica="r1", phase="Loading") == 4.0


def test_a_version_whose_replicas_are_all_starting_has_none_ready() -> None:
    fleet = FleetMetrics(reading(named("r1", phase=Phase.WARMING)), None, NOBODY)
    assert value(fleet, "replicas_ready", version="gen@1.0.0") == 0


def test_what_scaling_asked_for_is_added_up_over_cells() -> None:
    decisions = (Decided("gen@1.0.0", 2, "load"), Decided("gen@1.0.0--b", 1, "load"))
    fleet = FleetMetrics(reading(decisions=decisions), None, NOBODY)
    assert value(fleet, "replicas_desired", version="gen@1.0.0") == 3


def test_replicas_that_left_are_counted_by_cause() -> None:
    restarts = (Restart("gen@1.0.0", Cause.STALLED, 2), Restart("gen@1.0.0", Cause.CRASHED, 1))
    fleet = FleetMetrics(reading(restarts=restarts), None, NOBODY)
    for cause, count in (("stalled", 2), ("crashed", 1), ("drained", None)):
        labels = {"version": "gen@1.0.0", "cause": cause}
        assert value(fleet, "replica_restarts_total", **labels) == count


def test_each_ingress_says_which_table_it_runs_on() -> None:
    fleet = FleetMetrics(reading(), None, NOBODY)
    for ingress in ("i1", "i2"):
        assert value(fleet, "config_valid", replica=ingress) == 1
        assert value(fleet, "config_info", replica=ingress, digest="d1") == 1
        assert value(fleet, "requests_in_flight", replica=ingress, version="gen@1.0.0") == 3


def test_control_is_up_when_it_was_heard_lately() -> None:
    for age_s, up in ((None, 0), (1.0, 1), (30.0, 0)):
        fleet = FleetMetrics(reading(published_age_s=age_s), None, NOBODY)
        assert value(fleet, "control_up") == up


def test_the_weight_of_a_rollout_is_shown_by_the_model_it_changes() -> None:
    rollout = {"stable": "gen@1.0.0", "canary": "gen@2.0.0", "rollout": {"id": "r1"}}
    table = parse_table(table_record(routes={"chat": rollout}, keys=[], tenants={}))
    published = Published(1, 1, weights=(("r1", 25.0),))
    fleet = FleetMetrics(reading(published=published), table, NOBODY)
    assert value(fleet, "rollout_weight_ratio", model="chat", version="gen@2.0.0") == 0.25
    unknown = FleetMetrics(reading(published=Published(1, 1)), table, NOBODY)
    assert value(unknown, "rollout_weight_ratio", model="chat", version="gen@2.0.0") == 0.0


def test_without_a_board_the_missing_are_still_told() -> None:
    fleet = FleetMetrics(None, None, {("board", "board"): True, ("gen@1.0.0", "r1"): False})
    assert value(fleet, "scrape_missing", app="board", replica="board") == 1
    assert value(fleet, "scrape_missing", app="gen@1.0.0", replica="r1") == 0
    assert value(fleet, "control_up") is None
    assert "modelyard_scrape_missing" in fleet.scrape().text


def test_every_deployment_that_was_heard_of_is_asked() -> None:
    cells = model_cells(reading(named("r1"), named("r2", "gen@1.0.0--b", age_s=100.0)))
    assert cells == {Cell("gen@1.0.0", "Generator"), Cell("gen@1.0.0--b", "Generator")}


def test_a_replica_that_posts_and_does_not_answer_is_missing() -> None:
    board = reading(named("r1"), named("r2"), named("starting", phase=Phase.LOADING))
    answered = {("gen@1.0.0", "r1"), ("ingress", "i1")}
    gone = set(unheard(board, "ingress", answered, {}))
    assert gone == {("gen@1.0.0", "r2"), ("ingress", "i2")}


def test_a_replica_that_was_scaled_away_is_not_missed() -> None:
    board = reading(named("r1"), named("away", age_s=20.0), ingresses=())
    assert list(unheard(board, "ingress", {("gen@1.0.0", "r1")}, {"gen@1.0.0": 0})) == []


def test_a_paused_replica_that_serve_still_calls_is_missing() -> None:
    board = reading(
        named("r1"), named("paused", age_s=20.0), named("away", age_s=90.0), ingresses=()
    )
    gone = list(unheard(board, "ingress", {("gen@1.0.0", "r1")}, {"gen@1.0.0": 1}))
    assert gone == [("gen@1.0.0", "paused")]
