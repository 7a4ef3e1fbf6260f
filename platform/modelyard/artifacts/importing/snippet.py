"""The lines of a Serve config that serve a version, ready to paste."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Final

from modelyard.artifacts.manifest import Manifest
from modelyard.artifacts.memory import kv_bytes_per_token
from modelyard.artifacts.model_config import read_model_config
from modelyard.config.shells import SHELLS
from modelyard.contract.operations import Kind

_DEADLINES_TOTAL_S: Final = 60  # of the route below
_MIB: Final = 1 << 20
_LEAST_KV_BYTES: Final = 256 * _MIB


def app_entry(folder: Path, manifest: Manifest, artifact: str) -> str:
    """One entry of `applications`. folder: the version's. artifact: its address."""
    generator = manifest.kind is Kind.GENERATOR
    path, shell = next((path, one) for path, one in SHELLS.items() if one.kind is manifest.kind)
    shutdown_s = max(90, ceil(manifest.limits.drain_s), _DEADLINES_TOTAL_S)
    devices = manifest.device.accelerators
    options = f"num_cpus: {1 if generator else 0.5}" + (f", num_gpus: {devices}" if devices else "")
    lines = [
        f"- name: {manifest.full_name}",
        "  route_prefix: null",
        f"  import_path: {path}",
        "  args:",
        f"    artifact: {artifact}",
        f"    digest: {manifest.digest()}",
    ]
    if generator:
        lines.append(f"    engine: {_engine(folder, manifest)}")
    lines += [
        "  deployments:",
        f"  - name: {shell.deployment}",
        f"    max_ongoing_requests: {20 if generator else 64}",
        f"    graceful_shutdown_timeout_s: {shutdown_s}",
        "    max_surge_percent: 100",
        f"    ray_actor_options: {{{options}}}",
    ]
    if generator:
        lines += [
            "    health_check_period_s: 2",
            "    health_check_timeout_s: 10",
            "    autoscaling_config:",
            "      min_replicas: 1",
            "      max_replicas: 1",
            "      target_ongoing_requests: 12",
            "      metrics_interval_s: 1",
            '      policy: {policy_function: "cluster.scaling_policy:QueuedPlusOngoing"}',
        ]
    else:
        lines += [
            "    num_replicas: 1",
            "    user_config: {max_batch_size: 32, max_batch_tokens: 8192, max_wait_ms: 0}",
        ]
    return "\n".join(lines)


def _engine(folder: Path, manifest: Manifest) -> str:
    """On an accelerator vLLM fills what is left of its memory; on CPU somebody must say how much:
    room for two full contexts here."""
    accelerators = manifest.device.accelerators
    if accelerators:
        spread = f", tensor_parallel_size: {accelerators}" if accelerators > 1 else ""
        return f"{{max_num_seqs: 16{spread}}}"
    per_token = kv_bytes_per_token(read_model_config(folder), manifest)
    need_bytes = 2 * per_token * manifest.limits.max_context_tokens
    kv_bytes = max(_LEAST_KV_BYTES, ceil(need_bytes / _MIB) * _MIB)
    return f"{{max_num_seqs: 16, kv_cache_memory_bytes: {kv_bytes}}}"


def route_entry(manifest: Manifest) -> str:
    """One entry of the table's `routes`, under the artifact's name as its alias."""
    if manifest.kind is not Kind.GENERATOR or manifest.limits.max_output_tokens is None:
        return f"{manifest.name}: {{stable: {manifest.full_name}}}"
    most = min(512, manifest.limits.max_output_tokens)
    default = min(256, most)
    return "\n".join(
        (
            f"{manifest.name}:",
            f"  stable: {manifest.full_name}",
            f"  limits: {{max_output_tokens: {most}, default_max_output_tokens: {default}, "
            "max_queued_requests: 100}",
            f"  deadlines: {{first_token_s: 10, idle_s: 15, total_s: {_DEADLINES_TOTAL_S}}}",
        )
    )
