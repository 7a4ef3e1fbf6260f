"""The text of `modelyard status`, from made-up apps."""

from __future__ import annotations

from dataclasses import replace

from cluster.observe import AppView, LastFailure, ReplicaView
from modelyard.cli.status_text import app_lines, board_lines, board_record
from modelyard.control.ingress_post import IngressPost
from modelyard.control.published import Override, Published
from modelyard.control.reading import IngressEntry, Reading
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.probes import Probes
from tests.cli.rollout_views import a_view

READY = ReplicaView("r-1", Phase.READY, 60.4, 12.34, 3, 41, 0.2, None)
LOADING = ReplicaView("r-2", Phase.LOADING, 7.0, 9.0, 0, 42, 6.0, None)
HEAD = f"{'gen@1.0.0':<32} {'RUNNING':<14}"


def app(*replicas: ReplicaView, status: str = "RUNNING", message: str = "") -> AppView:
    return AppView("gen@1.0.0", status, message, {}, replicas)


def test_no_app_makes_no_line() -> None:
    assert app_lines([]) == []


def test_a_ready_replica_says_how_long_it_took_to_start() -> None:
    assert app_lines([app(READY)]) == [
        f"{HEAD} r-1        Ready 60 s, started in 12.3 s, 3 ongoing, pid 41"
    ]


def test_a_starting_replica_says_its_phase_only() -> None:
    assert app_lines([app(LOADING)]) == [f"{HEAD} r-2        Loading 7 s, 0 ongoing, pid 42"]


def test_an_app_is_named_once_over_its_replicas() -> None:
    first, second = app_lines([app(READY, LOADING)])
    assert first.startswith(f"{HEAD} r-1")
    assert second.startswith(" " * len(HEAD) + " r-2")


def test_a_failed_replica_says_why() -> None:
    failed = replace(LOADING, phase=Phase.FAILED, cause="model.safetensors: sha256 differs")
    assert app_lines([app(failed)])[0].endswith("pid 42: model.safetensors: sha256 differs")


def test_an_app_without_posts_shows_serves_counts() -> None:
    silent = replace(app(), states={"STARTING": 1, "RUNNING": 2})
    assert app_lines([silent]) == [f"{HEAD} 1 STARTING, 2 RUNNING"]


def test_an_app_without_replicas_is_a_line_without_trailing_spaces() -> None:
    assert app_lines([app()]) == [HEAD.rstrip()]


def test_the_last_line_of_a_message_is_shown_unless_the_app_runs() -> None:
    message = "Traceback (most recent call last):\n  ...\nArtifactError: no manifest\n"
    assert app_lines([app(status="DEPLOY_FAILED", message=message)])[1:] == [
        "  ArtifactError: no manifest"
    ]
    assert len(app_lines([app(READY, message=message)])) == 1


def test_every_app_has_its_lines_in_the_order_given() -> None:
    other = replace(app(LOADING), name="embed@2", status="DEPLOYING")
    assert [line.split()[0] for line in app_lines([app(READY), other])] == ["gen@1.0.0", "embed@2"]


INGRESS = IngressPost("i-1", "43a03522c293ff", True, in_flight=(("gen@1", 2), ("emb@1", 1)))
WORD = Published(
    3,
    7,
    (("r-1", 25.0), ("r-2", 100.0)),
    frozenset({"beta-1"}),
    (Override("floor", "gen@1.0.0", 2.0, "ops-1", "a launch", 59.6),),
    frozenset({"r-2"}),
)


def reading(**changes: object) -> Reading:
    whole = Reading((), (IngressEntry(INGRESS, 0.1),), (), WORD, 0.4, 100.0)
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_an_app_that_scales_says_how_many_and_why() -> None:
    scaled = replace(app(READY), ready=1, starting=1, desired=2, why="60 wait and run, 24 each")
    assert app_lines([scaled])[-1] == ("  1 ready, 1 starting, 2 desired: 60 wait and run, 24 each")
    assert len(app_lines([replace(app(READY), ready=1, desired=1)])) == 1


def test_ingresses_show_their_table_and_control_its_word() -> None:
    assert board_lines(reading()) == [
        "ingress i-1: table 43a03522c293, 3 in flight, 0.1 s ago",
        "control: epoch 3, revision 7, 0 s ago",
        "  rollout r-1: 25 % on the canary",
        "  rollout r-2: 100 % on the canary, finished",
        "  override floor gen@1.0.0 2, for 60 s more, by ops-1: a launch",
        "  revoked keys: beta-1",
    ]


def test_control_tells_more_of_a_rollout_than_the_board() -> None:
    """And of one that it does not have any more, the weight that is still published."""
    view = a_view(id="r-1", waits_for="requests: the canary answered 188 of 300")
    lines = board_lines(reading(), [view])
    assert lines[2:4] == [
        "  rollout r-1: Holding, 25 % on the canary: waits for requests: the canary answered 188 "
        "of 300; 4 min of the hold left",
        "  rollout r-2: 100 % on the canary, finished",
    ]
    assert board_record(reading(), [view])["rollouts"] == [view]
    gone = view | {"phase": "Promoted", "in_table": False}
    assert not [line for line in board_lines(reading(), [gone]) if "r-1" in line]
    assert board_record(reading())["rollouts"] == []


def test_a_refused_table_is_shouted() -> None:
    bad = replace(INGRESS, table_valid=False, table_error="routes: required\nmore")
    [first, *_] = board_lines(reading(ingresses=(IngressEntry(bad, 0.1),)))
    assert first.endswith("its latest table was REFUSED: routes: required")
    none = replace(bad, table_digest="")
    assert "NO TABLE" in board_lines(reading(ingresses=(IngressEntry(none, 0.1),)))[0]


def test_control_that_is_silent_holds_or_never_spoke_says_so() -> None:
    assert "NOT ANSWERING" in board_lines(reading(published_age_s=9.0))[1]
    held = board_lines(reading(published=replace(WORD, held="the store was lost")))
    assert held[2] == "  rollouts are HELD: the store was lost"
    nothing = board_lines(reading(published=None, published_age_s=None))
    assert nothing[1:] == ["control: nothing was ever published"]


def test_a_freeze_of_rollouts_is_shouted_and_that_of_a_version_is_not() -> None:
    freezes = tuple(
        Override("freeze", target, None, "ops-1", "incident", 60.0)
        for target in ("*", "rollout:r-1", "gen@1")
    )
    lines = board_lines(reading(published=replace(WORD, overrides=freezes)))
    shouted = [line for line in lines if "FROZEN" in line]
    assert shouted == [
        f"  FROZEN, {what}: nothing moves by itself, no rollback either; by ops-1: incident"
        for what in ("everything", "rollout:r-1")
    ]


def test_as_json_the_same() -> None:
    record = board_record(reading())
    assert record["control"]["weights"] == {"r-1": 25.0, "r-2": 100.0}
    assert record["control"]["overrides"][0]["author"] == "ops-1"
    assert record["ingresses"][0]["in_flight"] == {"gen@1": 2, "emb@1": 1}
    assert board_record(reading(published=None))["control"] is None


def test_a_replica_shows_its_digest_and_where_its_start_went() -> None:
    phases = ((Phase.FETCHING, 0.1), (Phase.LOADING, 3.25), (Phase.SELF_TEST, 0.5))
    view = ReplicaView(
        "r-1", Phase.READY, 60.0, 3.85, 3, 41, 0.5, None, digest8="12345678", phases=phases
    )
    (line,) = app_lines([AppView("gen@1", "RUNNING", "", {}, (view,))])
    assert "started in 3.9 s (Fetching 0.1, Loading 3.2, SelfTest 0.5), 3 ongoing" in line
    assert line.endswith("pid 41, digest 12345678")


def test_a_fetch_says_how_far_it_is() -> None:
    fetched = (120_000_000, 269_000_000)
    view = ReplicaView("r-1", Phase.FETCHING, 2.0, 2.0, 0, 41, 0.5, None, fetched=fetched)
    (line,) = app_lines([AppView("gen@1", "DEPLOYING", "", {}, (view,))])
    assert "Fetching 2 s, 120 of 269 MB, 0 ongoing" in line


def test_a_replica_without_progress_is_marked() -> None:
    probes = Probes(startup=True, readiness=False, liveness=False)
    view = ReplicaView("r-1", Phase.READY, 2.0, 2.0, 9, 41, 0.5, None, probes=probes)
    (line,) = app_lines([AppView("gen@1", "RUNNING", "", {}, (view,))])
    assert line.endswith("NOT LIVE")


def test_a_stalled_replica_says_the_word() -> None:
    stalled = replace(LOADING, phase=Phase.FAILED, cause="busy for 10 s", cause_kind=Cause.STALLED)
    assert app_lines([app(stalled)])[0].endswith("pid 42: stalled: busy for 10 s")


def test_a_drained_replica_does_not_say_it_twice() -> None:
    told = replace(READY, cause="drained by ops-1: old", cause_kind=Cause.DRAINED)
    assert app_lines([app(told)])[0].endswith("pid 41: drained by ops-1: old")


FAILURE = LastFailure("SelfTest: the text differs:\n expected 'a'", Cause.START_FAILED, 240.0)


def test_an_app_that_was_given_up_says_its_last_failure() -> None:
    given_up = replace(app(status="DEPLOY_FAILED"), failure=FAILURE)
    assert app_lines([given_up])[-1] == (
        "  last failure 240 s ago: start_failed: SelfTest: the text differs: expected 'a'"
    )


def test_an_app_that_runs_or_whose_failed_replica_is_shown_does_not() -> None:
    failed = replace(LOADING, phase=Phase.FAILED, cause="no")
    for view in (app(READY), app(failed, status="DEPLOYING")):
        assert app_lines([replace(view, failure=FAILURE)]) == app_lines([view])
