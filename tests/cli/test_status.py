"""The text of `modelyard status`, from made-up apps."""

from __future__ import annotations

from dataclasses import replace

from cluster.observe import AppView, ReplicaView
from modelyard.cli.status import _lines
from modelyard.lifecycle.phases import Phase

READY = ReplicaView("r-1", Phase.READY, 60.4, 12.34, 3, 41, 0.2, None)
LOADING = ReplicaView("r-2", Phase.LOADING, 7.0, 9.0, 0, 42, 6.0, None)
HEAD = f"{'gen@1.0.0':<32} {'RUNNING':<14}"


def app(*replicas: ReplicaView, status: str = "RUNNING", message: str = "") -> AppView:
    return AppView("gen@1.0.0", status, message, {}, replicas)


def test_no_app_makes_no_line() -> None:
    assert _lines([]) == []


def test_a_ready_replica_says_how_long_it_took_to_start() -> None:
    assert _lines([app(READY)]) == [
        f"{HEAD} r-1        Ready 60 s, started in 12.3 s, 3 ongoing, pid 41"
    ]


def test_a_starting_replica_says_its_phase_only() -> None:
    assert _lines([app(LOADING)]) == [f"{HEAD} r-2        Loading 7 s, 0 ongoing, pid 42"]


def test_an_app_is_named_once_over_its_replicas() -> None:
    first, second = _lines([app(READY, LOADING)])
    assert first.startswith(f"{HEAD} r-1")
    assert second.startswith(" " * len(HEAD) + " r-2")


def test_a_failed_replica_says_why() -> None:
    failed = replace(LOADING, phase=Phase.FAILED, cause="model.safetensors: sha256 differs")
    assert _lines([app(failed)])[0].endswith("pid 42: model.safetensors: sha256 differs")


def test_an_app_without_posts_shows_serves_counts() -> None:
    silent = replace(app(), states={"STARTING": 1, "RUNNING": 2})
    assert _lines([silent]) == [f"{HEAD} 1 STARTING, 2 RUNNING"]


def test_an_app_without_replicas_is_a_line_without_trailing_spaces() -> None:
    assert _lines([app()]) == [HEAD.rstrip()]


def test_the_last_line_of_a_message_is_shown_unless_the_app_runs() -> None:
    message = "Traceback (most recent call last):\n  ...\nArtifactError: no manifest\n"
    assert _lines([app(status="DEPLOY_FAILED", message=message)])[1:] == [
        "  ArtifactError: no manifest"
    ]
    assert len(_lines([app(READY, message=message)])) == 1


def test_every_app_has_its_lines_in_the_order_given() -> None:
    other = replace(app(LOADING), name="embed@2", status="DEPLOYING")
    assert [line.split()[0] for line in _lines([app(READY), other])] == ["gen@1.0.0", "embed@2"]
