"""A fleet of two zones for an emulated cluster, and its models."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import yaml

from modelyard.artifacts.manifest import GOLDEN_NAME, read_manifest
from modelyard.artifacts.package import write_manifest
from modelyard.config.demo import DEMO_KEY, OPS_KEY
from modelyard.contract.operations import Kind
from modelyard.tenancy.keys import hash_key
from modelyard.testing.tiny_model import write_tiny_model

SLOTS: Final = 4  # of each replica of a generator
STREAM_TOKENS: Final = 150
TOTAL_S: Final = 240
KINDS: Final = {
    "wide": Kind.GENERATOR,  # over two devices
    "chat": Kind.GENERATOR,
    "draft": Kind.GENERATOR,
    "intent": Kind.CLASSIFIER,
    "vectors": Kind.EMBEDDER,
    "ranks": Kind.RERANKER,
    "visitor": Kind.EMBEDDER,
}
ALIASES: Final = ("wide", "chat", "draft", "intent", "vectors", "ranks")
GENERATORS: Final = ("wide", "chat", "draft")


def write_models(folder: Path, generator: Path) -> None:
    """generator: the version that every generator is a copy of, under a name of its own. A model of
    some kilobytes would write thousands of tokens a second, whose passing on takes all of a small
    machine."""
    for name, kind in KINDS.items():
        if kind is Kind.GENERATOR:
            _write_generator(folder / name / "1.0.0", name, generator)
        else:
            write_tiny_model(folder / name / "1.0.0", name=name, kind=kind)


def _write_generator(folder: Path, name: str, source: Path) -> None:
    shutil.copytree(source, folder)
    (folder / GOLDEN_NAME).unlink(missing_ok=True)
    manifest = read_manifest(source)
    limits = manifest.limits.model_copy(update={"drain_s": float(TOTAL_S)})
    changed = manifest.model_copy(update={"name": name, "version": "1.0.0", "limits": limits})
    write_manifest(folder, changed, ("short",))


def fleet_text(models: Path, port: int, *, visitor: bool = False) -> str:
    """visitor: a model that comes first, takes the half of two devices, and goes again; what it
    leaves is room that the others do not fill by themselves."""
    record = {
        "schema": "modelyard/fleet/v1",
        "http_options": {"host": "127.0.0.1", "port": port},
        "proxy_location": "HeadOnly",
        "control": {"state_path": "~/.modelyard/control.sqlite"},
        "ingress": {"graceful_shutdown_timeout_s": TOTAL_S + 10},
        "node_pools": _pools(),
        "models": {name: _model(models, name) for name in ALIASES},
        "routes": {name: _route(name) for name in ALIASES},
        "tenants": {"demo": {"tier": "paid", "models": ["*"]}},
        "keys": [
            {"id": "demo-1", "tenant": "demo", "sha256": hash_key(DEMO_KEY), "roles": ["invoke"]},
            {"id": "ops-1", "sha256": hash_key(OPS_KEY), "roles": ["admin", "scrape"]},
        ],
    }
    if visitor:
        models_of: dict[str, Any] = record["models"]  # type: ignore[assignment]
        models_of["visitor"] = _model(models, "visitor") | {
            "memory_gb": 12,
            "spread": {"zones": 2},
            "scaling": {"min_replicas": 2, "max_replicas": 2},
        }
    return yaml.safe_dump(record, sort_keys=False)


def _pools() -> dict[str, Any]:
    whole = {"accelerator": "H100", "devices": 2, "memory_gb": 80, "price_per_hour": 5.0}
    shared = {"accelerator": "L4", "devices": 2, "memory_gb": 24, "cpus": 16}
    pools = {}
    for zone in ("a", "b"):
        pools[f"whole-{zone}"] = whole | {"nodes": 1, "zone": zone}
        pools[f"shared-{zone}"] = shared | {"nodes": 1, "zone": zone, "sharing": "shared"}
    return pools


def _model(models: Path, name: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "kind": str(KINDS[name]),
        "pool": ["shared-a", "shared-b"],
        "versions": {"1.0.0": {"artifact": f"file://{models}/{name}/1.0.0"}},
        "serve": {"max_ongoing_requests": 64},
        "memory_gb": 3,
    }
    if name in GENERATORS:
        made["serve"] = {
            "max_ongoing_requests": SLOTS,
            "graceful_shutdown_timeout_s": TOTAL_S + 30,
        }
        made["engine"] = {"max_num_seqs": SLOTS, "kv_cache_memory_bytes": 268_435_456}
        made["memory_gb"] = 9
    if name == "chat":
        made |= {"spread": {"zones": 2}, "scaling": {"min_replicas": 2, "max_replicas": 2}}
    if name == "wide":
        made |= {"pool": ["whole-a", "whole-b"], "tensor_parallel_size": 2}
        del made["memory_gb"]
    return made


def _route(name: str) -> dict[str, Any]:
    made: dict[str, Any] = {"stable": f"{name}@1.0.0"}
    if name in GENERATORS:
        made["limits"] = {"max_output_tokens": 512, "max_queued_requests": 100}
        made["deadlines"] = {"first_token_s": 60, "idle_s": 60, "total_s": TOTAL_S}
    return made
