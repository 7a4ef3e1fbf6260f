"""The fleet spec: machines, models, the table: what `modelyard plan` makes a Serve config of.

Names of Serve, vLLM and the table keep their meaning here. One file, or one with team files
(`include`) that add models, routes, tenants, keys and quotas of their own.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Frozen, Region
from modelyard.config.model_args import (
    Artifact,
    ControlArgs,
    EngineArgs,
    StartBudgets,
    WatchdogArgs,
)
from modelyard.config.serve_file import (
    ActorOptions,
    HttpOptions,
    LoggingOptions,
    NonNegative,
    Positive,
)
from modelyard.config.swap import Gigabytes, PlaceName
from modelyard.config.table import TableKeys
from modelyard.contract.operations import Kind

FLEET_SCHEMA: Final = "modelyard/fleet/v1"

ModelName = Annotated[str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")]
Version = Annotated[str, Field(pattern=r"^[0-9A-Za-z]+([._-][0-9A-Za-z]+)*$")]
PoolName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=32)]
Zone = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]


class NodePool(Frozen):
    """Machines of one kind in one zone.

    accelerator: Ray's name of it (`H100`, `L4`); None for machines without one. devices: of each
    machine. memory_gb: of each device; of the machine for a pool without accelerators, where
    models run on the CPU. cpus: that models may use on each machine. sharing: `whole`, a replica
    has its devices to itself, or `shared`, several replicas on a device: there each device is a
    Ray node of its own. slices: memory is given out in so many parts of a device; None for whole
    GB. The same sizes for all keep freed blocks of use to others (8: within 5 % of the best).
    fast_domain: `node`, the devices of one machine; tensor parallel replicas never leave it.
    price_per_hour: of each machine. names: of the machines; left out, POOL-0, POOL-1 and so on.
    """

    nodes: int = Field(ge=0, le=10_000)
    accelerator: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,32}$")] | None = None
    devices: int = Field(default=1, ge=1, le=64)
    memory_gb: Gigabytes
    cpus: Positive = 8
    sharing: Literal["whole", "shared"] = "whole"
    slices: Literal[1, 2, 4, 7, 8, 16] | None = 8
    zone: Zone = "local"
    region: Region | None = None
    fast_domain: Literal["node"] = "node"
    price_per_hour: NonNegative = 1.0
    names: tuple[PlaceName, ...] = ()

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.names and len(self.names) != self.nodes:
            raise ValueError(f"names has {len(self.names)} names for {self.nodes} nodes")
        if len(set(self.names)) != len(self.names):
            raise ValueError("names has one name twice: machines are told apart by it")
        if self.accelerator is None and (self.devices != 1 or self.sharing != "whole"):
            raise ValueError("devices and sharing are of accelerators: name one, or leave them out")
        return self


class Spread(Frozen):
    """How far the replicas of a version must lie apart.

    nodes, zones: over at least so many, in equal parts as far as whole replicas allow: at most
    ceil(replicas / nodes) on one machine. survive: what may be lost while max_replicas remain; the
    planner adds the spare ones (10 over three zones: 15).
    """

    nodes: int = Field(default=1, ge=1, le=1000)
    zones: int = Field(default=1, ge=1, le=100)
    survive: Literal["zone", "node"] | None = None

    @model_validator(mode="after")
    def _something_is_left(self) -> Self:
        parts = self.zones if self.survive == "zone" else self.nodes
        if self.survive is not None and parts < 2:
            raise ValueError(
                f"nothing is left of one {self.survive}: set {self.survive}s to at least 2"
            )
        return self


class Where(Frozen):
    """Only there. Left out: anywhere in the model's pools."""

    zones: tuple[Zone, ...] | None = Field(default=None, min_length=1)
    accelerators: tuple[str, ...] | None = Field(default=None, min_length=1)


class Scaling(Frozen):
    """Replicas, and Serve's keys that move them. Every replica up to max_replicas has its place.

    min_replicas: 0 only for a swappable model, or with downscale_to_zero_delay_s.
    """

    min_replicas: int = Field(default=1, ge=0)
    max_replicas: int = Field(default=1, ge=1, le=10_000)
    target_ongoing_requests: Positive | None = None
    look_back_period_s: Positive = 10.0
    upscale_delay_s: NonNegative = 5.0
    downscale_delay_s: NonNegative = 600.0
    downscale_to_zero_delay_s: NonNegative | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError(
                f"min_replicas {self.min_replicas} is above max_replicas {self.max_replicas}: "
                "lower it, or raise the maximum"
            )
        return self


class ServeOptions(Frozen):
    """Serve's keys of a model's deployment, without those that the planner writes."""

    max_ongoing_requests: int = Field(gt=0)
    graceful_shutdown_timeout_s: Positive = 90.0
    health_check_period_s: Positive = 2.0
    health_check_timeout_s: Positive = 10.0
    max_surge_percent: int = Field(default=0, ge=0, le=100)
    user_config: dict[str, Any] | None = None
    runtime_env: dict[str, Any] | None = None
    logging_config: LoggingOptions | None = None


class FleetVersion(Frozen):
    """artifact, digest: as in the app's `args`. scaling: in place of the model's."""

    artifact: Artifact
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    scaling: Scaling | None = None


class FleetModel(Frozen):
    """A model and its versions.

    pool: the node pools that may hold it. memory_gb: of one replica, over all its devices; left
    out, it follows from the manifest: weights, overhead, and the KV cache of `sequences` full
    contexts. compute_percent: of a shared device. cpus: of one replica. tensor_parallel_size:
    whole devices of one machine. priority: who gets a place when there is not enough room, the
    higher first. swappable: not always loaded; it shares memory with other swappable models, and
    its first caller after a pause is told to come back.
    """

    kind: Kind
    pool: tuple[PoolName, ...] = Field(min_length=1)
    tensor_parallel_size: int = Field(default=1, ge=1, le=64)
    memory_gb: Gigabytes | None = None
    compute_percent: Annotated[float, Field(gt=0, le=100)] = 5.0
    cpus: NonNegative = 1.0
    sequences: int = Field(default=1, ge=1)
    where: Where = Where()
    spread: Spread = Spread()
    priority: int = Field(default=0, ge=-1000, le=1000)
    swappable: bool = False
    serve: ServeOptions
    engine: EngineArgs | None = None
    scaling: Scaling = Scaling()
    start_budgets: StartBudgets | None = None
    watchdog: WatchdogArgs | None = None
    versions: dict[Version, FleetVersion] = Field(min_length=1)

    def scaling_of(self, version: str) -> Scaling:
        return self.versions[version].scaling or self.scaling


class FrontOptions(Frozen):
    """Serve's keys of the ingress."""

    num_replicas: int = Field(default=2, ge=1)
    max_ongoing_requests: int = Field(default=1000, gt=0)
    graceful_shutdown_timeout_s: Positive = 120.0
    ray_actor_options: ActorOptions = ActorOptions(num_cpus=0.2)


class ControlOptions(ControlArgs):
    """Control's args, and Serve's keys of it."""

    max_ongoing_requests: int = Field(default=200, gt=0)
    ray_actor_options: ActorOptions = ActorOptions(num_cpus=0.1)


class FleetSpec(TableKeys):
    """A whole cluster. region, routes, tiers, tenants, keys, issuers, quotas: the table's."""

    schema_: Literal["modelyard/fleet/v1"] = Field(alias="schema")
    include: tuple[str, ...] = ()
    proxy_location: Literal["HeadOnly", "EveryNode"] = "EveryNode"
    http_options: HttpOptions
    ingress: FrontOptions = FrontOptions()
    control: ControlOptions
    node_pools: dict[PoolName, NodePool] = Field(min_length=1)
    models: dict[ModelName, FleetModel] = Field(min_length=1)
