"""An emulated cluster of two zones: planned, deployed, verified; defragmented under load; a node
lost, and replanned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from modelyard.contract.operations import Kind
from tests.integration.placement_fleet import (
    ALIASES,
    GENERATORS,
    KINDS,
    SLOTS,
    fleet_text,
    write_models,
)
from tests.integration.placement_load import SlotsInUse
from tests.integration.placement_platform import EmulatedPlatform, Streams

pytestmark = [pytest.mark.integration, pytest.mark.slow]

OFFSET = 740
REPLICAS = {"wide": 1, "chat": 2, "draft": 1}
CALLERS = {name: 3 * count for name, count in REPLICAS.items()}  # of 4 slots a replica
# How long a drain looks idle before it counts as idle: a stream that is longer must be waited for.
SEEN_IDLE_S = 3.0
ASKED: dict[Kind, tuple[str, dict[str, Any]]] = {
    Kind.GENERATOR: ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    Kind.CLASSIFIER: ("/v1/classify", {"input": "Where is my parcel?"}),
    Kind.EMBEDDER: ("/v1/embeddings", {"input": "Where is my parcel?"}),
    Kind.RERANKER: ("/v1/rerank", {"query": "parcel", "documents": ["a parcel", "a letter"]}),
}


@pytest.fixture(scope="module")
def emulated(
    starter_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmulatedPlatform]:
    """Running the plan that a model has left behind which came first and is gone."""
    home = tmp_path_factory.mktemp("emulated")
    models = home / "models"
    models.mkdir()
    for folder in starter_models.iterdir():
        (models / folder.name).symlink_to(folder)
    write_models(models, models / "smollm2-135m-instruct" / "1.0.0")
    port = 8000 + OFFSET
    platform = EmulatedPlatform(
        home, f"http://127.0.0.1:{port}", home / "zones.fleet.yaml", home / "zones.serve.yaml"
    )
    platform.fleet.write_text(fleet_text(models, port))
    before = home / "before.fleet.yaml"
    before.write_text(fleet_text(models, port, visitor=True))
    platform.plan(fleet=before)
    platform.plan()
    try:
        platform.deploy("--emulate", str(platform.fleet), "--port-offset", str(OFFSET))
        yield platform
    finally:
        platform.run("down")


def require_answers(platform: EmulatedPlatform) -> None:
    with platform.client() as client:
        for alias in ALIASES:
            path, body = ASKED[KINDS[alias]]
            answer = client.post(path, json={"model": alias, **body})
            assert answer.status_code == 200, f"{alias}: {answer.text}"


def require_as_planned(platform: EmulatedPlatform) -> None:
    """Plan, placement groups and each replica's own report, device by device."""
    placement = platform.status()["placement"]
    assert placement["mismatches"] == [], placement
    assert placement["pending"] == [], placement


def apps_at(platform: EmulatedPlatform, place: str) -> set[str]:
    """By the Serve config."""
    parts = platform.serve.read_text().split("\n- name: ")[1:]
    return {part.split("\n")[0].strip() for part in parts if f"modelyard/place: {place}}}" in part}


def test_every_replica_is_where_it_was_planned_and_answers(emulated: EmulatedPlatform) -> None:
    require_as_planned(emulated)
    require_answers(emulated)


def test_a_device_is_freed_under_load_and_no_stream_is_cut(emulated: EmulatedPlatform) -> None:
    leaving = apps_at(emulated, "shared-a-0-d0")
    assert {app.partition("@")[0] for app in leaving} == {"chat", "vectors"}
    before = emulated.pids()
    emulated.let_starts_go_first()
    streams = Streams(emulated, CALLERS)
    load = SlotsInUse(emulated.url, REPLICAS, SLOTS)
    with streams.flowing(), load.sampled():
        defrag = ("plan", str(emulated.fleet), "-o", str(emulated.serve), "--defrag")
        made = emulated.run(*defrag, "--moves", "2", "--execute")
    assert made.returncode == 0, made.stdout + made.stderr
    assert len(load.shares) >= 10
    assert median(load.shares) >= 0.7, load.shares
    assert [sent for sent in streams.sent if sent.fault] == []
    assert {sent.alias for sent in streams.sent} == set(GENERATORS)
    long = [sent for sent in streams.sent if sent.seconds > SEEN_IDLE_S]
    assert len(long) > len(streams.sent) / 2
    assert apps_at(emulated, "shared-a-0-d0") == set()
    after = emulated.pids()
    assert {app: pids for app, pids in before.items() if app not in leaving} == {
        app: after[app] for app in before if app not in leaving
    }
    assert not leaving & after.keys()
    require_as_planned(emulated)
    require_answers(emulated)


def test_what_a_lost_device_held_is_placed_anew_and_nothing_else_moves(
    emulated: EmulatedPlatform,
) -> None:
    lost = apps_at(emulated, "shared-b-0-d0")
    assert {app.partition("@")[0] for app in lost} == {"chat", "intent"}
    before = emulated.pids()
    emulated.kill_node("shared-b-0-d0")
    emulated.plan("--lost", "shared-b-0-d0")
    emulated.deploy()
    after = emulated.pids()
    assert {app: after[app] for app in before if app not in lost} == {
        app: pids for app, pids in before.items() if app not in lost
    }
    # chat asks for two zones, so its second replica stays in this one.
    here = {app.partition("@")[0] for app in apps_at(emulated, "shared-b-0-d1")}
    assert "chat" in here
    require_as_planned(emulated)
    require_answers(emulated)


def test_a_lost_machine_comes_back(emulated: EmulatedPlatform) -> None:
    before = emulated.pids()
    emulated.deploy("--emulate", str(emulated.fleet))
    running = emulated.done("plan", str(emulated.fleet), "-o", str(emulated.serve))
    assert "shared-b-0-d0" in running
    assert emulated.pids() == before
    require_as_planned(emulated)
