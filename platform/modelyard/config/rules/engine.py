"""Rules about what a generator's engine takes and needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from modelyard.config.checked import Checked
from modelyard.config.faults import Fault
from modelyard.config.model_args import GeneratorArgs
from modelyard.config.serve_file import Deployment

SHARED_MEMORY: Final = "gpu_mem"  # what `modelyard plan` counts on a shared device


def generators_have_no_user_config(checked: Checked) -> Iterator[Fault]:
    """An empty one counts: Serve calls `reconfigure` for any, and a generator has none to call."""
    for app in checked.models:
        for path, deployment in app.deployments():
            tunable = app.shell is not None and app.shell.tunables is not None
            if not tunable and deployment.user_config is not None:
                yield checked.fault(
                    (*path, "user_config"),
                    "a generator has no tunables, and the deploy would fail: remove it",
                )


def tensor_parallel_has_gpus(checked: Checked) -> Iterator[Fault]:
    for app in checked.models:
        args = app.args
        size = args.engine.tensor_parallel_size if isinstance(args, GeneratorArgs) else None
        given = [gpus_of(deployment) for _, deployment in app.deployments()]
        if size is not None and size > 1 and max(given, default=0.0) < size:
            yield checked.fault(
                (*app.path, "args", "engine", "tensor_parallel_size"),
                f"needs {size} GPUs, and the deployment asks for fewer: set "
                f"`ray_actor_options: {{num_gpus: {size}}}`, or lower it",
            )


def gpus_of(deployment: Deployment) -> float:
    """GPUs that one replica sees. Of bundles it is what its actor asks for, in the first: a GPU of
    another bundle is kept for nobody. A share of a planned device is that device."""
    given = deployment.ray_actor_options.num_gpus or 0.0
    shared = SHARED_MEMORY in deployment.ray_actor_options.resources
    return 1.0 if shared and 0 < given < 1 else given
