"""A plan as a Serve file: read back it is the same plan, and modelyard and Serve accept it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.serve.schema import ServeDeploySchema

from modelyard.artifacts.manifest import Device, Limits, Warmup
from modelyard.config.check import check_document
from modelyard.config.document import parse_document
from modelyard.config.fleet import FleetSpec
from modelyard.contract.errors import ConfigError
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import a_manifest
from placement.cell_app import SWAPPED_OUT_AFTER_S
from placement.express import serve_config, to_yaml
from placement.fleet_problem import fleet_problem
from placement.parse import bundles_of, cells_of, models_of
from placement.plan import Cell, Plan
from placement.problem import Bound, Packing

DIGEST = "ab" * 32
KEYS = {
    "routes": {
        "chat": {"stable": "big@1.0.0"},
        "short": {"stable": "small@1.0.0"},
        "embed": {"stable": "emb@1.0.0"},
        "intent": {"stable": "one@1.0.0"},
        "rank": {"stable": "two@1.0.0"},
    },
    "tenants": {"demo": {"models": ["*"]}},
}
POOLS = {
    "shared": {
        **{"nodes": 2, "accelerator": "L4", "devices": 1, "memory_gb": 24, "sharing": "shared"},
        "zone": "a",
    },
    "whole": {"nodes": 2, "accelerator": "H100", "devices": 2, "memory_gb": 80, "zone": "b"},
    "cpu": {"nodes": 2, "memory_gb": 16, "cpus": 8},
}


def model(kind: str, pool: str, **more: Any) -> dict[str, Any]:
    name = more.pop("name")
    versions = {"1.0.0": {"artifact": f"file:///m/{name}/1.0.0"}}
    serve = {"max_ongoing_requests": 40}
    return {"kind": kind, "pool": [pool], "serve": serve, "versions": versions} | more


def spec_record() -> dict[str, Any]:
    models = {
        "big": model("generator", "whole", name="big", tensor_parallel_size=2),
        "small": model(
            "generator",
            "shared",
            name="small",
            compute_percent=40,
            engine={"max_num_seqs": 32},
            scaling={"max_replicas": 3, "target_ongoing_requests": 20},
        ),
        "emb": model("embedder", "cpu", name="emb", cpus=0.5),
        "one": model(
            "classifier", "shared", name="one", swappable=True, scaling={"min_replicas": 0}
        ),
        "two": model("reranker", "shared", name="two", swappable=True),
    }
    return {
        "schema": "modelyard/fleet/v1",
        "http_options": {"host": "127.0.0.1", "port": 8000},
        "control": {"state_path": "~/.modelyard/control.sqlite"},
        "node_pools": POOLS,
        "models": models,
    } | KEYS


MEMORY = {
    "big@1.0.0": 90_000_000_000,
    "small@1.0.0": 8_500_000_000,
    "emb@1.0.0": 1_000_000_000,
    "one@1.0.0": 2_500_000_000,
    "two@1.0.0": 5_000_000_000,
}
CELLS = (
    Cell("big@1.0.0", "", ("whole-0",), 1, 1),
    Cell("emb@1.0.0", "", ("cpu-0", "cpu-1"), 2, 1),
    Cell("one@1.0.0", "", ("shared-1-d0",), 1, 0),
    Cell("small@1.0.0", "", ("shared-0-d0",), 2, 1),
    Cell("small@1.0.0", "b", ("shared-1-d0",), 1, 0),
    Cell("two@1.0.0", "", ("shared-1-d0",), 1, 0),
)


def plan_of(spec: FleetSpec, cells: tuple[Cell, ...]) -> Plan:
    asked = fleet_problem(spec, MEMORY)
    place = asked.problem.place["shared-1-d0"]
    areas = {area.name: area.in_table(place, spec) for area in asked.areas.values()}
    return Plan(asked.problem, Packing(()), Bound(0, 0), cells, areas)


def rendered(cells: tuple[Cell, ...] = CELLS, **changes: Any) -> dict[str, Any]:
    spec = FleetSpec.model_validate(spec_record() | changes)
    found: dict[str, Any] = yaml.safe_load(to_yaml(spec, plan_of(spec, cells), "x", DIGEST))
    return found


def app_named(config: dict[str, Any], name: str) -> Any:
    return next(app for app in config["applications"] if app["name"] == name)


@st.composite
def some_cells(draw: st.DrawFn) -> tuple[Cell, ...]:
    cells = []
    for version, pool in (("big", "whole-{}"), ("emb", "cpu-{}"), ("small", "shared-{}-d0")):
        numbers = draw(st.lists(st.sampled_from((0, 1)), unique=True, max_size=2))
        for name, number in zip(("", "b"), numbers, strict=False):
            each = draw(st.integers(1, 5))
            least = draw(st.integers(0, each))
            cells.append(Cell(f"{version}@1.0.0", name, (pool.format(number),), each, least))
    return tuple(cells)


@settings(max_examples=40, deadline=None)
@given(some_cells())
def test_a_file_read_back_is_the_plan_that_made_it(cells: tuple[Cell, ...]) -> None:
    assert cells_of(rendered(cells)) == cells


def test_the_same_plan_is_the_same_bytes_and_another_source_another_header() -> None:
    spec = FleetSpec.model_validate(spec_record())
    again = FleetSpec.model_validate(spec_record())
    one = to_yaml(spec, plan_of(spec, CELLS), "x.fleet.yaml", DIGEST)
    assert one == to_yaml(again, plan_of(again, CELLS), "x.fleet.yaml", DIGEST)
    head = one.decode().splitlines()[:2]
    assert "x.fleet.yaml: do not edit" in head[0]
    assert head[1].endswith(DIGEST)
    other = to_yaml(spec, plan_of(spec, CELLS), "x.fleet.yaml", "cd" * 32)
    assert other.splitlines()[2:] == one.splitlines()[2:]


def test_the_text_says_what_the_config_says_and_has_the_table_once() -> None:
    spec = FleetSpec.model_validate(spec_record())
    plan = plan_of(spec, CELLS)
    text = to_yaml(spec, plan, "x", DIGEST).decode()
    assert yaml.safe_load(text) == serve_config(spec, plan)
    assert text.count("schema: modelyard/table/v1") == 1
    assert (text.count("&"), text.count("user_config: *table")) == (1, 1)


def test_ingress_and_control_come_first_with_one_table_and_its_swap_areas() -> None:
    config = rendered()
    ingress, control = config["applications"][:2]
    assert (ingress["name"], control["name"]) == ("ingress", "control")
    table = ingress["deployments"][0]["user_config"]
    assert table == control["deployments"][0]["user_config"]
    assert table["routes"] == KEYS["routes"]
    area = table["swap_areas"]["shared"]
    assert area == {"memory_gb": 6.0, "models": {"one@1.0.0": 3.0, "two@1.0.0": 6.0}}


@pytest.fixture
def models(tmp_path: Path) -> Path:
    kinds = {"big": Kind.GENERATOR, "small": Kind.GENERATOR, "emb": Kind.EMBEDDER}
    kinds |= {"one": Kind.CLASSIFIER, "two": Kind.RERANKER}
    for name, kind in kinds.items():
        output = {"max_output_tokens": 1024} if kind is Kind.GENERATOR else {}
        devices = {"big": 2, "emb": 0}.get(name, 1)
        manifest = a_manifest(
            name=name,
            kind=kind,
            limits=Limits(max_context_tokens=4096, drain_s=60, **output),
            warmup=Warmup(golden_sha256="0" * 64),
            device=Device(accelerators=devices, min_memory_gb=1),
        )
        folder = tmp_path / name / "1.0.0"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_bytes(manifest.canonical())
    return tmp_path


def test_check_finds_nothing_wrong_with_a_rendered_file(models: Path) -> None:
    spec = FleetSpec.model_validate(spec_record())
    text = to_yaml(spec, plan_of(spec, CELLS), "x", DIGEST).decode()
    document = parse_document(text, "x.serve.yaml")
    report = check_document(document, lambda uri: models / uri.removeprefix("file:///m/"))
    assert report.faults == ()
    assert report.apps == 2 + len(CELLS)


def test_serves_own_schema_takes_a_rendered_file() -> None:
    config = rendered()
    taken = ServeDeploySchema.model_validate(config)
    assert [app.name for app in taken.applications] == [a["name"] for a in config["applications"]]


def test_a_shared_device_gives_a_share_and_the_engine_its_part_of_the_memory() -> None:
    app = app_named(rendered(), "small@1.0.0--b")
    (deployment,) = app["deployments"]
    bundle = {"CPU": 1, "GPU": 0.4, "gpu_mem": 9, "gpu_comp": 40}
    assert deployment["placement_group_bundles"] == [bundle]
    assert deployment["ray_actor_options"] == {
        "num_cpus": 1,
        "num_gpus": 0.4,
        "resources": {"gpu_mem": 9, "gpu_comp": 40},
    }
    assert deployment["placement_group_strategy"] == "STRICT_PACK"
    selector = deployment["placement_group_bundle_label_selector"]
    assert selector == [{"modelyard/place": "shared-1-d0"}]
    assert app["args"]["engine"] == {"max_num_seqs": 32, "gpu_memory_utilization": 0.375}


def test_the_cells_of_a_version_have_identical_args() -> None:
    config = rendered()
    one, other = app_named(config, "small@1.0.0"), app_named(config, "small@1.0.0--b")
    assert one["args"] == other["args"]


def test_a_small_model_has_its_part_of_the_memory_in_its_args() -> None:
    config = rendered()
    assert app_named(config, "two@1.0.0")["args"]["gpu_memory_utilization"] == 0.25
    assert "gpu_memory_utilization" not in app_named(config, "emb@1.0.0")["args"]


def test_whole_devices_are_one_bundle_and_tensor_parallel() -> None:
    app = app_named(rendered(), "big@1.0.0")
    (deployment,) = app["deployments"]
    assert deployment["placement_group_bundles"] == [{"CPU": 1, "GPU": 2}]
    assert deployment["ray_actor_options"] == {"num_cpus": 1, "num_gpus": 2}
    assert app["args"]["engine"] == {"tensor_parallel_size": 2}


def test_a_machine_without_devices_gives_cpus_and_memory() -> None:
    (deployment,) = app_named(rendered(), "emb@1.0.0")["deployments"]
    assert deployment["placement_group_bundles"] == [{"CPU": 0.5, "memory": 10**9}]
    assert deployment["ray_actor_options"] == {"num_cpus": 0.5, "memory": 10**9}
    selector = deployment["placement_group_bundle_label_selector"]
    assert selector == [{"modelyard/place": "in(cpu-0,cpu-1)"}]


def test_every_cell_scales_by_modelyards_policy_within_its_own_bounds() -> None:
    config = rendered()
    for cell in CELLS:
        (deployment,) = app_named(config, cell.app)["deployments"]
        scaling = deployment["autoscaling_config"]
        assert "num_replicas" not in deployment
        assert (scaling["min_replicas"], scaling["max_replicas"]) == (
            cell.min_replicas,
            cell.replicas,
        )
        assert scaling["policy"] == {"policy_function": "cluster.scaling_policy:QueuedPlusOngoing"}
        assert ("downscale_to_zero_delay_s" in scaling) == (cell.min_replicas == 0)


def test_a_swappable_model_leaves_at_once_whatever_the_spec_says() -> None:
    models = spec_record()["models"]
    for name in ("one", "small"):
        models[name]["scaling"] = models[name]["scaling"] | {"downscale_to_zero_delay_s": 900}
    config = rendered(models=models)
    for app, delay_s in (("one@1.0.0", SWAPPED_OUT_AFTER_S), ("small@1.0.0--b", 900)):
        (deployment,) = app_named(config, app)["deployments"]
        assert deployment["autoscaling_config"]["downscale_to_zero_delay_s"] == delay_s


def test_the_front_is_held_by_the_label_that_the_spec_says_and_by_none_else() -> None:
    def selectors(**changes: Any) -> list[Any]:
        front = rendered(**changes)["applications"][:2]
        options = [app["deployments"][0]["ray_actor_options"] for app in front]
        return [one.get("label_selector") for one in options]

    assert selectors() == [None, None]
    options = {"num_cpus": 0.2, "label_selector": {"modelyard/node": "head"}}
    control = spec_record()["control"] | {"ray_actor_options": options}
    assert selectors(ingress={"ray_actor_options": options}, control=control) == [
        {"modelyard/node": "head"},
        {"modelyard/node": "head"},
    ]


def test_one_more_cell_changes_no_other_app() -> None:
    before = {app["name"]: app for app in rendered(CELLS[:4])["applications"]}
    after = {app["name"]: app for app in rendered(CELLS)["applications"]}
    assert {name: after[name] for name in before} == before


def test_what_was_written_by_hand_is_no_cell_and_still_a_model() -> None:
    config = yaml.safe_load((Path(__file__).parents[2] / "configs/local.serve.yaml").read_text())
    assert (cells_of(config), bundles_of(config)) == ((), {})
    assert "all-minilm-l6-v2@1.0.0" in models_of(config)


@pytest.mark.parametrize("words", ["!in(a)", "in(a,a)", "in()", "", "a b", "!a"])
def test_a_selector_that_no_plan_has_is_refused(words: str) -> None:
    config = rendered(CELLS[:1])
    (deployment,) = app_named(config, "big@1.0.0")["deployments"]
    deployment["placement_group_bundle_label_selector"] = [{"modelyard/place": words}]
    with pytest.raises(ConfigError, match=r"big@1\.0\.0: the label selector modelyard/place"):
        cells_of(config)


def test_places_that_cannot_have_equal_parts_are_refused() -> None:
    config = rendered(CELLS[:2])
    (deployment,) = app_named(config, "emb@1.0.0")["deployments"]
    deployment["autoscaling_config"]["max_replicas"] = 3
    with pytest.raises(ConfigError, match="2 places cannot have equal parts"):
        cells_of(config)
