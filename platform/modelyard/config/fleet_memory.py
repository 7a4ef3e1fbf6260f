"""How much memory one replica of a version takes, from the spec or from its manifest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from modelyard.artifacts.cache_folder import CacheFolder
from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.artifacts.memory import ENGINE_OVERHEAD_BYTES, need_bytes
from modelyard.artifacts.model_config import ModelConfig, read_model_config
from modelyard.artifacts.store import resolve
from modelyard.artifacts.stores import split_version
from modelyard.config.fleet import FleetModel, FleetSpec, FleetVersion
from modelyard.config.settings import DEFAULT_HOME, Settings
from modelyard.contract.errors import ModelyardError
from modelyard.contract.operations import Kind


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Where versions lie on this machine. resolve: a `file://` address to its folder. cached: a
    manifest's digest to the folder of a version that a replica fetched here."""

    resolve: Callable[[str], Path]
    cached: Callable[[str], Path] | None = None

    @classmethod
    def of(cls, settings: Settings) -> Artifacts:
        return cls(lambda uri: resolve(uri, settings.home), CacheFolder(settings.cache).version)

    def folder(self, version: FleetVersion) -> Path | None:
        """None for one in a bucket that is not here: nothing is asked over the network.

        Raises ConfigError, or ValueError, for an address that is none."""
        if not version.artifact.startswith("s3://"):
            return self.resolve(version.artifact)
        _, name, number = split_version(version.artifact)
        folders = [self.resolve(f"file://{DEFAULT_HOME}/models/{name}/{number}")]
        if version.digest is not None and self.cached is not None:
            folders.insert(0, self.cached(version.digest))
        return next((folder for folder in folders if folder.is_dir()), None)


def memory_bytes(model: FleetModel, manifest: Manifest, config: ModelConfig) -> int:
    """Of one replica over all its devices: weights, overhead of each device, and the KV cache of
    `sequences` full contexts; never less than the manifest declares.

    An engine that is given `kv_cache_memory_bytes` takes those, on each device.
    """
    need = need_bytes(config, manifest, manifest.weights.size_bytes)
    overhead, cache = need.overhead, need.cache
    if manifest.kind is Kind.GENERATOR:
        overhead = ENGINE_OVERHEAD_BYTES * model.tensor_parallel_size
        cache *= model.sequences
        if model.engine is not None and model.engine.kv_cache_memory_bytes is not None:
            given = model.engine.kv_cache_memory_bytes * model.tensor_parallel_size
            cache = max(given, cache)
    declared = ceil(manifest.device.min_memory_gb * 1e9)
    return max(need.weights + overhead + cache, declared)


def memory_by_version(
    spec: FleetSpec, artifacts: Artifacts
) -> tuple[dict[str, int], dict[str, str]]:
    """Bytes of one replica by `name@version`; and of those that are not known, why not."""
    known: dict[str, int] = {}
    unknown: dict[str, str] = {}
    for name, model in spec.models.items():
        for number, version in model.versions.items():
            try:
                known[f"{name}@{number}"] = _one(model, version, artifacts)
            except (ModelyardError, ValueError) as error:  # ValueError: urlsplit, an odd address
                unknown[f"{name}@{number}"] = str(error)
    return known, unknown


def _one(model: FleetModel, version: FleetVersion, artifacts: Artifacts) -> int:
    if model.memory_gb is not None:
        return ceil(model.memory_gb * 1e9)
    folder = artifacts.folder(version)
    if folder is None:
        raise ValueError(
            "its memory is not known, since planning asks no bucket and the version is not on this "
            f"machine: give the model memory_gb, or run `modelyard models pull {version.artifact}`"
        )
    return memory_bytes(model, read_manifest(folder), read_model_config(folder))
