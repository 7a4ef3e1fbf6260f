"""Rules about the environment of replicas, which the shells, Ray and its head already set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from modelyard.config.checked import Checked
from modelyard.config.faults import Fault, YamlPath

_BY_SHELLS: Final = "the shells set this variable themselves"
_BY_RAY: Final = "Ray sets the threads from num_cpus"

# Who sets each variable, or whom it would cross; deployments/vllm_engine.py and small.py.
RESERVED: Final = {
    "HF_HUB_OFFLINE": _BY_SHELLS,
    "TRANSFORMERS_OFFLINE": "another name for HF_HUB_OFFLINE, which the shells set",
    "TORCHDYNAMO_DISABLE": _BY_SHELLS,
    "TOKENIZERS_PARALLELISM": _BY_SHELLS,
    "OMP_NUM_THREADS": _BY_RAY,
    "MKL_NUM_THREADS": f"{_BY_RAY}, and MKL follows OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES": "Ray sets it from num_gpus, to the devices that it has given",
}
RESERVED_PREFIXES: Final = {
    "VLLM_": "vLLM's variables change how the engine runs, and the shells set those it needs",
    "RAY_": "every process of a Ray cluster must agree on it, so it is set where Ray is started",
    "MODELYARD_": "every process of the platform must agree on it, so it is set where Ray is "
    "started",
}


def environment_is_the_shells(checked: Checked) -> Iterator[Fault]:
    for app in checked.apps:
        yield from _reserved(checked, (*app.path, "runtime_env"), app.options.runtime_env)
        for path, deployment in app.deployments():
            yield from _reserved(
                checked,
                (*path, "ray_actor_options", "runtime_env"),
                deployment.ray_actor_options.runtime_env,
            )


def _reserved(checked: Checked, path: YamlPath, runtime_env: dict[str, Any]) -> Iterator[Fault]:
    variables = runtime_env.get("env_vars")
    for name in variables if isinstance(variables, dict) else ():
        prefixes = (why for prefix, why in RESERVED_PREFIXES.items() if name.startswith(prefix))
        why = RESERVED.get(name) or next(prefixes, None)
        if why is not None:
            yield checked.fault((*path, "env_vars", name), f"{why}: remove it")
