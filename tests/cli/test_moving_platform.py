"""A running platform as the mover sees it: files, drains and the load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from cluster.moves import BoardLoad
from cluster.observe import Unreachable
from modelyard.cli.moving_platform import REASON, MovingPlatform
from modelyard.contract.errors import ConfigError
from placement.guard import Load
from placement.moving import Unseen
from placement.plan import Cell
from placement.problem import Packing

CELL = Cell("m@1", "", ("g0",), 1, 1)
NEXT = Cell("m@1", "b", ("g1",), 1, 1)


class FakeApps:
    def __init__(self, load: BoardLoad | None = None) -> None:
        self.files: list[bytes] = []
        self.apps: dict[str, Mapping[str, Any]] = {"m@1": {"name": "m@1"}}
        self._load = load

    def deploy(self, config: bytes) -> None:
        self.files.append(config)
        self.apps = {app["name"]: app for app in yaml.safe_load(config)["applications"]}

    def deployed(self) -> Mapping[str, Mapping[str, Any]]:
        return self.apps

    def ready(self) -> dict[str, int]:
        return {"m@1": 1}

    def ongoing(self, app: str) -> int | None:
        return 3

    def failure(self, app: str) -> str:
        return f"{app} failed"

    def load(self) -> BoardLoad | None:
        return self._load


class FakeAdmin:
    def __init__(self, phases: dict[str, str] | None = None) -> None:
        self.overrides: list[dict[str, Any]] = [
            {"id": "o/1", "kind": "drain", "target": "m@1", "reason": "by hand"}
        ]
        self.views = [{"id": name, "phase": phase} for name, phase in (phases or {}).items()]

    def get(self, path: str) -> Any:
        return {
            "/admin/overrides": {"overrides": list(self.overrides)},
            "/admin/rollouts": {"rollouts": self.views},
        }[path]

    def post(self, path: str, body: dict[str, Any]) -> Any:
        assert path == "/admin/overrides"
        self.overrides.append(body | {"id": f"o/{len(self.overrides) + 1}"})

    def delete(self, path: str) -> Any:
        name = path.removeprefix("/admin/overrides/").replace("%2F", "/")
        self.overrides = [one for one in self.overrides if one["id"] != name]


class FakeFiles:
    """edited: what somebody has changed in the spec and not deployed."""

    def __init__(self, edited: Mapping[str, Any] | None = None) -> None:
        self.written: list[bytes] = []
        self._edited = edited or {}

    def rendered(self, cells: tuple[Cell, ...], packing: Packing) -> bytes:
        apps = [{"name": cell.app, **self._edited} for cell in cells]
        return yaml.safe_dump({"applications": apps}).encode()

    def write(self, cells: tuple[Cell, ...], packing: Packing) -> None:
        self.written.append(self.rendered(cells, packing))


def platform(
    apps: FakeApps,
    admin: FakeAdmin,
    files: FakeFiles | None = None,
    cells: tuple[Cell, ...] = (CELL,),
) -> MovingPlatform:
    return MovingPlatform(apps, admin, files or FakeFiles(), cells)


def test_an_app_comes_and_another_goes_in_files_that_are_written_and_deployed() -> None:
    apps, files = FakeApps(), FakeFiles()
    one = platform(apps, FakeAdmin(), files)
    one.deploy((CELL, NEXT), Packing(()))
    one.deploy((NEXT,), Packing(()))
    assert list(apps.apps) == ["m@1--b"]
    assert apps.files == files.written
    assert len(apps.files) == 2


def test_edits_that_nobody_has_deployed_are_not_deployed_with_a_move() -> None:
    apps, files = FakeApps(), FakeFiles({"import_path": "another:app"})
    with pytest.raises(ConfigError, match=r"deploy your edits first.*restart m@1 \(import_path\)"):
        platform(apps, FakeAdmin(), files).deploy((CELL, NEXT), Packing(()))
    assert (apps.files, files.written) == ([], [])


def test_a_cell_that_the_file_has_and_serve_has_not_is_no_part_of_the_move() -> None:
    other = Cell("n@1", "", ("g0",), 1, 1)
    with pytest.raises(ConfigError, match="add n@1"):
        platform(FakeApps(), FakeAdmin(), cells=(CELL, other)).deploy(
            (CELL, other, NEXT), Packing(())
        )


def test_what_an_earlier_run_has_drained_and_dropped_from_the_file_alone_may_go() -> None:
    apps, admin = FakeApps(), FakeAdmin()
    apps.apps["m@1--b"] = {"name": "m@1--b"}
    one = platform(apps, admin)
    with pytest.raises(ConfigError, match="DELETE m@1--b"):
        one.deploy((CELL,), Packing(()))
    one.drain("m@1--b", 60.0)
    one.deploy((CELL,), Packing(()))
    assert list(apps.apps) == ["m@1"]


def test_a_cluster_that_does_not_answer_is_a_look_that_failed() -> None:
    class Away(FakeApps):
        def ready(self) -> dict[str, int]:
            raise Unreachable("away")

        def ongoing(self, app: str) -> int | None:
            raise Unreachable("away")

        def failure(self, app: str) -> str:
            raise Unreachable("away")

    one = platform(Away(), FakeAdmin())
    for look in (one.ready, lambda: one.ongoing("m@1"), lambda: one.failure("m@1")):
        with pytest.raises(Unseen, match="away"):
            look()


def test_looks_are_passed_on() -> None:
    one = platform(FakeApps(), FakeAdmin())
    assert (one.ready(), one.ongoing("m@1"), one.failure("m@1")) == ({"m@1": 1}, 3, "m@1 failed")


def test_a_drain_is_ours_by_its_reason_and_ends_alone() -> None:
    admin = FakeAdmin()
    one = platform(FakeApps(), admin)
    one.drain("m@1--b", 60.0)
    assert admin.overrides[-1] == {
        "id": "o/2",
        "kind": "drain",
        "target": "m@1--b",
        "expires_in_s": 60.0,
        "reason": REASON,
    }
    assert one.drained() == {"m@1--b"}
    one.end_drain("m@1")
    assert len(admin.overrides) == 2
    one.end_drain("m@1--b")
    assert [override["id"] for override in admin.overrides] == ["o/1"]


def test_the_load_has_the_rollouts_that_are_in_progress() -> None:
    phases = {"r1": "Promoted", "r2": "Holding", "r3": "Pending", "r4": "Paused"}
    board = BoardLoad({"m@1": 1}, {"m@1": 8}, 0, "")
    assert platform(FakeApps(board), FakeAdmin(phases)).load() == Load(
        {"m@1": 1}, {"m@1": 8}, 0, ("r2", "r4"), ""
    )


def test_a_silent_board_makes_the_load_unknown() -> None:
    assert not platform(FakeApps(), FakeAdmin()).load().known
