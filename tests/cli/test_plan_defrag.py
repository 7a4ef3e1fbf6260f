"""`modelyard plan --defrag`, from a spec and its Serve config to files deployed one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from modelyard.cli import plan_defrag
from modelyard.cli.defrag_options import DefragOptions, defrag_options
from modelyard.cli.moving_platform import MovingPlatform
from modelyard.cli.plan_check import Fleet, check_rendered, load_fleet, require_deployable
from modelyard.cli.plan_defrag import run
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError
from placement.guard import Load
from placement.mover import Mover
from placement.moving import Pace
from placement.parse import cells_of
from placement.plan import Cell, Plan
from placement.planned import make_plan
from placement.problem import Packing

MODEL = """
  {name}:
    kind: generator
    pool: [h100]
    memory_gb: {memory}
    serve: {{max_ongoing_requests: 40}}
    scaling: {{min_replicas: {replicas}, max_replicas: {replicas}}}
    versions: {{"1": {{artifact: "s3://models.example/{name}/1"}}}}
"""
HEAD = """schema: modelyard/fleet/v1
http_options: {host: 127.0.0.1, port: 8000}
control: {state_path: ~/.modelyard/control.sqlite}
node_pools:
  h100: {nodes: 4, accelerator: H100, memory_gb: 80, cpus: 16, sharing: shared, price_per_hour: 2}
routes: {large: {stable: large@1}, small: {stable: small@1}}
tenants: {demo: {models: ["*"]}}
models:
"""
SCATTERED = (
    Cell("large@1", "", ("h100-0-d0",), 1, 1),
    Cell("large@1", "b", ("h100-1-d0",), 1, 1),
    Cell("small@1", "", ("h100-2-d0",), 1, 1),
    Cell("small@1", "b", ("h100-3-d0",), 1, 1),
)
QUICK = Pace(pause_s=1)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "x.fleet.yaml"
    models = (("large", 50, 2), ("small", 20, 2))
    path.write_text(
        HEAD + "".join(MODEL.format(name=n, memory=m, replicas=r) for n, m, r in models)
    )
    return load_fleet(path, Settings.from_environment())


def options(**given: Any) -> DefragOptions:
    return DefragOptions(**{"max_moves": 4, "pace": QUICK, **given})


def never(plan: Plan) -> None:
    raise AssertionError("nothing may be written")


class FakePlatform:
    """Everything is ready and idle at once, unless `dies_after` deploys."""

    def __init__(self, fleet: Fleet, dies_after: int = 99) -> None:
        self.fleet = fleet
        self.files: list[bytes] = []
        self.cells: tuple[Cell, ...] = SCATTERED
        self.drains: set[str] = set()
        self.dies_after = dies_after

    def deploy(self, cells: tuple[Cell, ...], packing: Packing) -> None:
        from dataclasses import replace

        base = make_plan(self.fleet.spec, self.fleet.memory, SCATTERED)
        self.files.append(self.fleet.rendered(replace(base, cells=cells, packing=packing)))
        self.cells = cells
        if len(self.files) == self.dies_after:
            raise KeyboardInterrupt

    def ready(self) -> Mapping[str, int]:
        return {cell.app: cell.replicas for cell in self.cells}

    def ongoing(self, app: str) -> int | None:
        return 0

    def drain(self, app: str, for_s: float) -> None:
        self.drains.add(app)

    def end_drain(self, app: str) -> None:
        self.drains.discard(app)

    def drained(self) -> frozenset[str]:
        return frozenset(self.drains)

    def failure(self, app: str) -> str:
        return ""

    def load(self) -> Load:
        return Load()


@pytest.fixture
def platform(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> FakePlatform:
    fake = FakePlatform(fleet)

    @contextmanager
    def there(*_: Any) -> Iterator[FakePlatform]:
        yield fake

    monkeypatch.setattr(plan_defrag, "_platform", there)
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    quick = partial(Mover, now=lambda: clock[0], sleep=sleep)
    monkeypatch.setattr(plan_defrag, "Mover", quick)
    return fake


def execute(fleet: Fleet, cells: tuple[Cell, ...], **given: Any) -> None:
    settings = Settings.from_environment()
    run(fleet, cells, never, settings, options(execute=True, **given))


def test_the_moves_are_shown_and_nothing_is_written(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    run(fleet, SCATTERED, never, Settings.from_environment(), options())
    told = capsys.readouterr().out
    assert "2 replicas move, 2 places are freed" in told
    assert "8.00 per hour, 100.0 % above the bound -> 4.00 per hour, 0.0 % above" in told
    assert "--execute" in told


def test_json_has_each_step_with_its_apps(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    run(fleet, SCATTERED, never, Settings.from_environment(), options(as_json=True))
    record = json.loads(capsys.readouterr().out)
    assert (record["price"], record["price_after"], record["bound"]) == (8.0, 4.0, 4.0)
    kinds = [step["kind"] for step in record["steps"]]
    assert kinds == ["add", "wait ready", "shift", "drain", "drop"] * 2
    assert len(record["steps"][0]["apps"]) == 5


def test_a_packing_that_is_tight_stays(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    tight = make_plan(fleet.spec, fleet.memory).cells
    run(fleet, tight, never, Settings.from_environment(), options())
    assert "no place can be freed" in capsys.readouterr().out


def test_without_a_placement_there_is_nothing_to_move(fleet: Fleet) -> None:
    with pytest.raises(ConfigError, match="nothing is placed yet"):
        run(fleet, (), never, Settings.from_environment(), options())


def test_a_file_of_another_spec_is_refused(fleet: Fleet) -> None:
    with pytest.raises(ConfigError, match="is not the plan of this spec"):
        run(fleet, SCATTERED[:3], never, Settings.from_environment(), options())


def test_every_deployed_file_is_valid_and_the_last_is_the_next_plan(
    fleet: Fleet, platform: FakePlatform
) -> None:
    execute(fleet, SCATTERED)
    assert len(platform.files) == 4
    for file in platform.files:
        require_deployable(check_rendered(fleet, file, Settings.from_environment()))
    again = make_plan(fleet.spec, fleet.memory, cells_of(yaml.safe_load(platform.files[-1])))
    assert fleet.rendered(again) == platform.files[-1]
    assert platform.drains == set()


@pytest.mark.parametrize("deploys", [1, 2, 3, 4])
def test_broken_off_after_any_deploy_the_same_command_goes_on(
    fleet: Fleet, platform: FakePlatform, deploys: int, capsys: pytest.CaptureFixture[str]
) -> None:
    platform.dies_after = deploys
    with pytest.raises(BaseException, match="130"):
        execute(fleet, SCATTERED)
    assert "broken off" in capsys.readouterr().err
    platform.dies_after = 99
    execute(fleet, cells_of(yaml.safe_load(platform.files[-1])))
    left = cells_of(yaml.safe_load(platform.files[-1]))
    assert len({cell.places for cell in left}) == 2
    assert sum(cell.replicas for cell in left) == 4
    assert platform.drains == set()


def test_a_plan_that_nobody_broke_off_is_deployed_again_for_nothing_else(
    fleet: Fleet, platform: FakePlatform
) -> None:
    execute(fleet, make_plan(fleet.spec, fleet.memory).cells)
    assert platform.files == []


def test_nothing_runs_is_said(fleet: Fleet, tmp_path: Path) -> None:
    from dataclasses import replace

    settings = replace(Settings.from_environment(), home=tmp_path)
    with pytest.raises(ConfigError, match="nothing is running"):
        run(fleet, SCATTERED, never, settings, options(execute=True))


def test_edits_of_the_spec_that_are_not_deployed_stop_it_before_anything_is_written(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_plan(fleet.spec, fleet.memory, SCATTERED)
    running = yaml.safe_load(fleet.rendered(made))["applications"]
    path = Path(fleet.document.file)
    path.write_text(path.read_text().replace("small: {stable: small@1}", "tiny: {stable: small@1}"))
    edited = load_fleet(path, Settings.from_environment())

    class Apps:
        def deployed(self) -> Mapping[str, Mapping[str, Any]]:
            return {app["name"]: app for app in running}

    class Admin:
        def get(self, _: str) -> Any:
            return {"overrides": []}

    files = plan_defrag._Files(edited, make_plan(edited.spec, edited.memory, SCATTERED), never)
    one = MovingPlatform(Apps(), Admin(), files, SCATTERED)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"in place ingress \(user_config\)"):
        one.deploy(SCATTERED, made.packing)


TWO_ZONES = (
    HEAD.replace("nodes: 4", "nodes: 2, zone: a")
    .replace(
        "node_pools:",
        "node_pools:\n  far: {nodes: 1, accelerator: H100, memory_gb: 80, cpus: 16, "
        "sharing: shared, price_per_hour: 2, zone: b}",
    )
    .replace(
        "routes: {large: {stable: large@1}, small: {stable: small@1}}", "routes: {m: {stable: m@1}}"
    )
    + """
  m: {kind: generator, pool: [h100, far], memory_gb: 50, spread: {zones: 2},
      serve: {max_ongoing_requests: 40}, scaling: {min_replicas: 1, max_replicas: 2},
      versions: {"1": {artifact: "s3://models.example/m/1"}}}
"""
)


def test_a_move_that_was_broken_off_is_finished_though_its_version_has_scaled_down(
    tmp_path: Path, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "zones.fleet.yaml"
    path.write_text(TWO_ZONES)
    fleet = platform.fleet = load_fleet(path, Settings.from_environment())
    old, asleep = Cell("m@1", "", ("h100-0-d0",), 1, 1), Cell("m@1", "b", ("far-0-d0",), 1, 0)
    cells = (old, asleep, Cell("m@1", "c", ("h100-1-d0",), 1, 1))
    platform.cells, platform.drains = cells, {"m@1"}
    monkeypatch.setattr(platform, "ready", lambda: {c.app: c.min_replicas for c in platform.cells})
    execute(fleet, cells)
    assert [cell.app for cell in platform.cells] == ["m@1--b", "m@1--c"]
    assert platform.drains == set()


def test_advice_is_never_the_command_that_was_given(fleet: Fleet, platform: FakePlatform) -> None:
    with pytest.raises(ConfigError, match="run `modelyard plan` with this -o") as caught:
        execute(fleet, SCATTERED[:3])
    assert "--execute" not in str(caught.value)


def test_options_that_are_not_given_are_as_they_are_by_themselves() -> None:
    none = defrag_options(None, None, None, None, execute=False, as_json=False)
    assert none == DefragOptions()
    made = defrag_options(7, 2, 0.0, 60.0, execute=True, as_json=True)
    pace = Pace(pause_s=0.0, ready_within_s=60.0)
    assert made == DefragOptions(7, 2, True, pace, True)
