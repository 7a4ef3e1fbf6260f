"""Which replica this is and what it may use, as Serve and Ray say it, or without them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import ray
from ray import serve

from modelyard.config.settings import Settings

PLACE_LABEL: Final = "modelyard/place"  # of Ray's nodes: what the planner calls this one


@dataclass(frozen=True, slots=True)
class Place:
    """What a model may use of its machine. torch and the tokenizers would take all they can see."""

    cpus: int
    gpus: int

    @classmethod
    def of_replica(cls) -> Self:
        """What Ray set aside for this actor; at least one CPU."""
        resources: dict[str, float] = ray.get_runtime_context().get_assigned_resources()  # type: ignore[no-untyped-call]
        return cls(max(1, int(resources.get("CPU", 1))), len(ray.get_gpu_ids()))

    def as_set(self, settings: Settings) -> Place:
        """The same without the GPUs, where they are emulated."""
        return replace(self, gpus=0) if settings.emulated_gpus else self

    @classmethod
    def of_process(cls) -> Self:
        """All that this process can see, without Ray. The device files say whether there is a GPU:
        asking torch would initialise CUDA before the engine's environment is set."""
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == ""
        gpus = 0 if hidden else len(list(Path("/dev").glob("nvidia[0-9]*")))
        return cls(len(os.sched_getaffinity(0)), gpus)


class ServeReplica:
    """This process as Serve knows it. Only inside a replica."""

    def __init__(self) -> None:
        context = serve.get_replica_context()
        self.app: str = context.app_name
        self.replica: str = context.replica_id.unique_id
        self.node: str = ray.get_runtime_context().get_node_id()
        self.place = Place.of_replica()
        self.gpu_ids: list[str] = [str(one) for one in ray.get_gpu_ids()]
        labels = ray.get_runtime_context().get_node_labels()
        self.place_name = str(labels.get(PLACE_LABEL, ""))
        self.placement_group: str = ray.get_runtime_context().get_placement_group_id() or ""

    @property
    def slots(self) -> int:
        """This replica's max_ongoing_requests, as it is now: Serve changes it without a restart.

        Private in Ray 2.60 and nowhere public: a replica's own context has the number of replicas
        but not their size, and the ingress's handle knows it as privately.
        """
        return int(serve.get_replica_context()._deployment_config.max_ongoing_requests)

    @property
    def drain_s(self) -> float:
        """Its graceful_shutdown_timeout_s: how long Serve lets it finish. As private as `slots`."""
        return float(serve.get_replica_context()._deployment_config.graceful_shutdown_timeout_s)

    @property
    def draining(self) -> bool:
        """Whether Serve has told this replica to stop: it is out of routing and finishes its work.

        Private in Ray 2.60: Serve calls its own actor class and tells the user's object nothing
        until all requests are done. The worker's table of actors leads to that class; a search
        through the garbage collector's objects would find it too, in 100 ms at each look. The
        state in Serve's details is public but a question to the controller, once a second for
        each replica. Where Ray has renamed one of the three, a drain is not shown, nothing more.
        """
        actors: dict[Any, Any] = ray._private.worker.global_worker.actors
        actor = next(iter(actors.values()), None)
        return bool(getattr(getattr(actor, "_replica_impl", None), "_shutting_down", False))
