"""For each rule of a fleet spec one wrong spec is told so, at its line."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.config.check import check_document
from modelyard.config.check_fleet import FLEET_RULES, FleetReport, check_fleet
from modelyard.config.document import parse_document
from modelyard.config.faults import DocumentError, Fault
from modelyard.config.fleet_memory import Artifacts

TEXT = """schema: modelyard/fleet/v1
region: eu
http_options: {host: 127.0.0.1}
control: {state_path: ~/.modelyard/control.sqlite}
node_pools:
  whole: {nodes: 2, accelerator: H100, devices: 2, memory_gb: 80, cpus: 8, zone: a}
  shared-a: &l4
    {nodes: 1, accelerator: L4, devices: 2, memory_gb: 24, cpus: 16, sharing: shared, zone: a}
  shared-b: {<<: *l4, zone: b}
  host: {nodes: 1, memory_gb: 16, cpus: 4, zone: b}
models:
  large:
    kind: generator
    pool: [whole]
    tensor_parallel_size: 2
    memory_gb: 120
    serve: {max_ongoing_requests: 40}
    engine: {max_num_seqs: 32}
    versions: {"1": {artifact: "file:///m/large/1"}}
  small:
    kind: generator
    pool: [shared-a, shared-b]
    memory_gb: 9
    spread: {zones: 2}
    scaling: {min_replicas: 1, max_replicas: 2}
    serve: {max_ongoing_requests: 40}
    engine: {max_num_seqs: 16}
    versions: {"1": {artifact: "file:///m/small/1"}}
  embed:
    kind: embedder
    pool: [host]
    memory_gb: 2
    serve: {max_ongoing_requests: 64}
    versions: {"1": {artifact: "file:///m/embed/1"}}
routes:
  chat: {stable: large@1}
  quick: {stable: small@1}
  vectors: {stable: embed@1}
tenants: {demo: {models: ["*"]}}
"""
LARGE = "    tensor_parallel_size: 2\n    memory_gb: 120\n"
SMALL = "    memory_gb: 9\n"
EMBED = "    pool: [host]\n    memory_gb: 2\n"


def found(text: str) -> FleetReport:
    return check_fleet(parse_document(text, "x.fleet.yaml"), Artifacts(Path))


@dataclass(frozen=True)
class Wrong:
    """`old` becomes `new` in TEXT; the fault is at `path`, on the line with `mark` or `new`."""

    old: str
    new: str
    path: str
    advice: str
    mark: str = ""
    value: Any = None

    @property
    def text(self) -> str:
        assert TEXT.count(self.old) == 1
        return TEXT.replace(self.old, self.new)

    @property
    def line(self) -> int:
        lines = self.text.split("\n")
        marked = [i for i, one in enumerate(lines, 1) if (self.mark or self.new.strip()) in one]
        assert len(marked) == 1, f"the mark must be on one line, not on {marked}"
        return marked[0]


WRONG = {
    "two machines of one name": Wrong(
        "zone: b}\nmodels:",
        "zone: b, names: [whole-0]}\nmodels:",
        "node_pools.host",
        "machine or device whole-0 has the name of one in whole",
        mark="names: [whole-0]",
    ),
    "a device name that is no label": Wrong(
        "sharing: shared, zone: a}\n  shared-b: {<<: *l4,",
        f"sharing: shared, zone: a, names: [{'n' * 62}]}}\n  shared-b: {{<<: *l4, names: [m],",
        "node_pools.shared-a.names",
        "has more than the 63 characters of a Ray label: give the machine a shorter name",
        mark="nnnn",
    ),
    "machines of another region": Wrong(
        "cpus: 4, zone: b}",
        "cpus: 4, zone: b, region: us}",
        "node_pools.host.region",
        "the cluster is in eu (region)",
        value="us",
    ),
    "a pool that is not there": Wrong(
        "pool: [whole]", "pool: [hole]", "models.large.pool.0", "did you mean whole?", value="hole"
    ),
    "a zone that no pool has": Wrong(
        SMALL,
        "    memory_gb: 9\n    where: {zones: [c]}\n",
        "models.small.where.zones.0",
        "write one of theirs (a, b), or add a pool",
        mark="zones: [c]",
        value="c",
    ),
    "an accelerator that no pool has": Wrong(
        SMALL,
        "    memory_gb: 9\n    where: {accelerators: [A100]}\n",
        "models.small.where.accelerators.0",
        "write one of theirs (L4), or add a pool",
        mark="A100",
        value="A100",
    ),
    "pools of two sorts": Wrong(
        "pool: [shared-a, shared-b]",
        "pool: [shared-a, shared-b, host]",
        "models.small.pool",
        "name pools of one sort, or make it two models",
    ),
    "memory that nobody knows": Wrong(
        "memory_gb: 9\n    spread: {zones: 2}\n    scaling: {min_replicas: 1, max_replicas: 2}\n"
        "    serve: {max_ongoing_requests: 40}\n    engine: {max_num_seqs: 16}\n"
        '    versions: {"1": {artifact: "file:///m/small/1"}}',
        "spread: {zones: 2}\n    scaling: {min_replicas: 1, max_replicas: 2}\n"
        "    serve: {max_ongoing_requests: 40}\n"
        '    versions: {"1": {artifact: "s3://bucket/m/small/1"}}',
        "models.small.versions.1.artifact",
        "give the model memory_gb, or run `modelyard models pull s3://bucket/m/small/1`",
        mark="s3://bucket",
        value="s3://bucket/m/small/1",
    ),
    "tensor parallelism over more than a machine": Wrong(
        LARGE,
        "    tensor_parallel_size: 4\n    memory_gb: 120\n",
        "models.large.tensor_parallel_size",
        "a machine of pool whole has 2 devices, and a replica never leaves its machine",
        mark="tensor_parallel_size: 4",
        value=4,
    ),
    "tensor parallelism on shared devices": Wrong(
        SMALL,
        "    memory_gb: 9\n    tensor_parallel_size: 2  # shared\n",
        "models.small.tensor_parallel_size",
        "name a pool with an accelerator and `sharing: whole`",
        mark="# shared",
        value=2,
    ),
    "an engine for an embedder": Wrong(
        EMBED,
        "    pool: [host]\n    memory_gb: 2\n    engine: {max_num_seqs: 8}\n",
        "models.embed.engine",
        "an engine: remove it, tunables are in serve.user_config",
        mark="max_num_seqs: 8",
    ),
    "tensor parallelism told to the engine alone": Wrong(
        "engine: {max_num_seqs: 32}",
        "engine: {max_num_seqs: 32, tensor_parallel_size: 2}",
        "models.large.engine.tensor_parallel_size",
        "set the model's own tensor_parallel_size instead",
        value=2,
    ),
    "a share of a device told to the engine": Wrong(
        "engine: {max_num_seqs: 16}",
        "engine: {max_num_seqs: 16, gpu_memory_utilization: 0.5}",
        "models.small.engine.gpu_memory_utilization",
        "remove it, and set memory_gb",
        value=0.5,
    ),
    "a replica larger than a device": Wrong(
        SMALL,
        "    memory_gb: 25\n",
        "models.small.memory_gb",
        "a replica needs 25.00 GB, and the largest of its pools gives it 24",
        value=25,
    ),
    "more CPUs than go with a device": Wrong(
        SMALL,
        "    memory_gb: 9\n    cpus: 9\n",
        "models.small.cpus",
        "a replica gets at most 8 CPUs",
        mark="cpus: 9",
        value=9,
    ),
    "a share of compute where nothing is shared": Wrong(
        LARGE,
        "    tensor_parallel_size: 2\n    memory_gb: 120\n    compute_percent: 50\n",
        "models.large.compute_percent",
        "none of its pools shares devices",
        mark="compute_percent: 50",
        value=50,
    ),
    "a spread over zones that are not there": Wrong(
        "spread: {zones: 2}",
        "spread: {zones: 3, survive: zone}",
        "models.small.spread.zones",
        "the model's pools have 2 zones: lower it, or add a pool",
        value=3,
    ),
    "a spread over machines that are not there": Wrong(
        "spread: {zones: 2}",
        "spread: {nodes: 3, survive: node}",
        "models.small.spread.nodes",
        "the model's pools have 2 nodes",
        value=3,
    ),
    "more parts than replicas": Wrong(
        "max_replicas: 2}",
        "max_replicas: 1}",
        "models.small.spread",
        "2 parts of at most 1 replicas (1): raise max_replicas, or spread less",
        mark="spread: {zones: 2}",
    ),
    "a swappable model that is spread": Wrong(
        SMALL,
        "    memory_gb: 9\n    swappable: true\n",
        "models.small.spread",
        "a swappable model is at one place",
        mark="spread: {zones: 2}",
    ),
    "a swappable model of two replicas": Wrong(
        "spread: {zones: 2}",
        "swappable: true",
        "models.small.scaling.max_replicas",
        "a swappable model has one replica",
        mark="max_replicas: 2",
        value=2,
    ),
    "a swappable model with a delay of its own": Wrong(
        "spread: {zones: 2}\n    scaling: {min_replicas: 1, max_replicas: 2}",
        "swappable: true\n    scaling: {min_replicas: 0, downscale_to_zero_delay_s: 300}",
        "models.small.scaling.downscale_to_zero_delay_s",
        "control says when a swappable model goes",
        mark="downscale_to_zero_delay_s: 300",
        value=300,
    ),
    "none running by accident": Wrong(
        "min_replicas: 1, max_replicas: 2}",
        "min_replicas: 0, max_replicas: 2}",
        "models.small.scaling.min_replicas",
        "set 1, make it swappable, or set downscale_to_zero_delay_s",
        value=0,
    ),
    "an unknown key": Wrong(
        SMALL,
        "    memory_gb: 9\n    swapable: true\n",
        "models.small.swapable",
        "did you mean swappable?",
        mark="swapable",
        value=True,
    ),
    "names for other machines than there are": Wrong(
        "zone: b}\nmodels:",
        "zone: b, names: [x, y]}\nmodels:",
        "node_pools.host",
        "names has 2 names for 1 nodes",
        mark="names: [x, y]",
    ),
}


def test_the_spec_is_fine() -> None:
    assert found(TEXT).faults == ()


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_spec_is_told_where_and_what_to_do(wrong: Wrong) -> None:
    faults = [fault for fault in found(wrong.text).faults if fault.path == wrong.path]
    assert len(faults) == 1, found(wrong.text).faults
    (fault,) = faults
    assert wrong.advice in fault.message
    assert (fault.file, fault.line) == ("x.fleet.yaml", wrong.line)
    assert fault.value == wrong.value


def test_every_rule_has_a_wrong_spec_of_its_own() -> None:
    fired = set()
    for wrong in WRONG.values():
        checked = found(wrong.text).checked
        if checked is not None:
            fired |= {rule for rule in FLEET_RULES if any(rule(checked))}
    assert fired == set(FLEET_RULES)


def test_a_zone_and_an_accelerator_that_no_pool_has_both_of() -> None:
    text = TEXT.replace("pool: [whole]", "pool: [whole, shared-b]").replace(
        LARGE, "    memory_gb: 20\n    where: {zones: [b], accelerators: [H100]}\n"
    )
    assert "both such a zone and such an accelerator" in str(found(text).faults[0])


def test_only_generators_run_on_several_devices() -> None:
    text = TEXT.replace("kind: generator\n    pool: [whole]", "kind: embedder\n    pool: [whole]")
    paths = {fault.path for fault in found(text).faults}
    assert paths == {"models.large.tensor_parallel_size", "models.large.engine"}


def test_a_version_with_its_own_scaling_is_told_there() -> None:
    own = '{"1": {artifact: "file:///m/small/1", scaling: {min_replicas: 0, max_replicas: 2}}}'
    text = TEXT.replace('{"1": {artifact: "file:///m/small/1"}}', own)
    (fault,) = found(text).faults
    assert fault.path == "models.small.versions.1.scaling.min_replicas"


def test_the_general_check_takes_a_fleet_spec() -> None:
    report = check_document(parse_document(TEXT, "x.fleet.yaml"), Path)
    assert report.ok
    assert report.routes == 3


@cache
def _lines() -> list[str]:
    return TEXT.split("\n")


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, TEXT.count("\n") - 1),
    st.sampled_from(["", "{}", "[]", "x", "0", "-1", "null", "1e400", "{x: 1}", "[[1]]"]),
)
def test_whatever_stands_on_a_line_ends_in_a_sentence(line: int, value: str) -> None:
    lines = list(_lines())
    key = lines[line].partition(":")[0]
    lines[line] = f"{key}: {value}"
    try:
        report = found("\n".join(lines))
    except DocumentError as error:
        faults: tuple[Fault, ...] = (error.fault,)
    else:
        faults = report.faults
    assert all(fault.message and fault.line for fault in faults)
