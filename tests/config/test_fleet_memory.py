"""How much memory a replica takes: what the spec says, else what the manifest comes to."""

import json
from pathlib import Path
from typing import Any

import pytest

from modelyard.artifacts.manifest import Device, Limits, Manifest, Weights
from modelyard.artifacts.model_config import ModelConfig
from modelyard.config.fleet import FleetModel, FleetSpec
from modelyard.config.fleet_memory import Artifacts, memory_by_version, memory_bytes
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import a_manifest

# 2 x layers x KV heads x head size x bytes of bfloat16, and a context of 1000 tokens.
KV = 2 * 4 * 2 * 64 * 2 * 1000
CONFIG: dict[str, Any] = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 512,
}
OVERHEAD = 700_000_000


def manifest(*, declared_gb: float = 0.1, kind: Kind = Kind.GENERATOR) -> Manifest:
    limits = {"max_context_tokens": 1000, "drain_s": 30}
    if kind is Kind.GENERATOR:
        limits["max_output_tokens"] = 100
    return a_manifest(
        name="chat",
        kind=kind,
        limits=Limits.model_validate(limits),
        device=Device(accelerators=0, min_memory_gb=declared_gb),
        weights=Weights(dtype="bfloat16", size_bytes=10_000_000, sha256="0" * 64),
    )


def model(**changes: Any) -> FleetModel:
    record = {
        "kind": "generator",
        "pool": ["host"],
        "serve": {"max_ongoing_requests": 4},
        "versions": {"1.0.0": {"artifact": "file:///m/chat/1.0.0"}},
    }
    return FleetModel.model_validate(record | changes)


def of(declared_gb: float = 0.1, **changes: Any) -> int:
    config = ModelConfig(Path("config.json"), CONFIG, CONFIG)
    return memory_bytes(model(**changes), manifest(declared_gb=declared_gb), config)


def test_weights_overhead_and_one_context() -> None:
    assert of() == 10_000_000 + OVERHEAD + KV


def test_each_sequence_has_a_context_of_its_own() -> None:
    assert of(sequences=8) == 10_000_000 + OVERHEAD + 8 * KV


def test_each_device_of_a_replica_has_an_engine_process() -> None:
    assert of(tensor_parallel_size=2) == 10_000_000 + 2 * OVERHEAD + KV


def test_an_engine_takes_the_cache_that_it_is_given_on_each_device() -> None:
    engine = {"kv_cache_memory_bytes": 500_000_000}
    assert of(engine=engine, tensor_parallel_size=2) == 10_000_000 + 2 * OVERHEAD + 10**9


def test_never_less_than_the_manifest_declares() -> None:
    assert of(declared_gb=3) == 3_000_000_000


def spec(**changes: Any) -> FleetSpec:
    return FleetSpec.model_validate(
        {
            "schema": "modelyard/fleet/v1",
            "http_options": {"host": "127.0.0.1"},
            "control": {"state_path": "/c"},
            "node_pools": {"host": {"nodes": 1, "memory_gb": 16}},
            "models": {"chat": model(**changes)},
            "routes": {"chat": {"stable": "chat@1.0.0"}},
        }
    )


def put(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(manifest().canonical())
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def test_memory_gb_is_taken_as_it_is_and_no_file_is_read() -> None:
    known, unknown = memory_by_version(spec(memory_gb=1.5), Artifacts(Path))
    assert (known, unknown) == ({"chat@1.0.0": 1_500_000_000}, {})


def test_a_version_in_a_folder_is_read(tmp_path: Path) -> None:
    folder = put(tmp_path / "chat")
    known, _ = memory_by_version(spec(), Artifacts(lambda uri: folder))
    assert known == {"chat@1.0.0": of()}


REMOTE = {"1.0.0": {"artifact": "s3://bucket/chat/1.0.0", "digest": "d" * 64}}


def test_a_version_in_a_bucket_is_read_where_a_replica_fetched_it(tmp_path: Path) -> None:
    put(tmp_path / ("d" * 64))
    artifacts = Artifacts(lambda uri: tmp_path / "none", lambda digest: tmp_path / digest)
    assert memory_by_version(spec(versions=REMOTE), artifacts)[0] == {"chat@1.0.0": of()}


def test_a_version_in_a_bucket_is_read_where_somebody_pulled_it(tmp_path: Path) -> None:
    put(tmp_path / "models/chat/1.0.0")

    def resolve(uri: str) -> Path:
        assert uri == "file://~/.modelyard/models/chat/1.0.0"
        return tmp_path / "models/chat/1.0.0"

    assert memory_by_version(spec(versions=REMOTE), Artifacts(resolve))[0] == {"chat@1.0.0": of()}


@pytest.mark.parametrize(
    ("versions", "why"),
    [
        (REMOTE, "give the model memory_gb, or run `modelyard models pull s3://bucket/chat/1.0.0`"),
        ({"1.0.0": {"artifact": "file:///nowhere/chat/1.0.0"}}, "no such folder"),
        ({"1.0.0": {"artifact": "s3://x"}}, "s3://bucket/prefix/NAME/VERSION"),
    ],
)
def test_what_is_not_known_is_said_with_what_to_do(
    versions: dict[str, Any], why: str, tmp_path: Path
) -> None:
    artifacts = Artifacts(lambda uri: Path("/nowhere/chat/1.0.0"), lambda digest: tmp_path / "no")
    known, unknown = memory_by_version(spec(versions=versions), artifacts)
    assert not known
    assert why in unknown["chat@1.0.0"]
