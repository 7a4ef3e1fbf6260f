import pickle

import pytest

from modelyard.artifacts.manifest import Limits, Manifest
from modelyard.contract.operations import Kind
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Description
from modelyard.testing.in_memory import post
from modelyard.testing.manifests import a_manifest


def manifest(output: int | None) -> Manifest:
    limits = Limits(max_context_tokens=2048, max_output_tokens=output, drain_s=60)
    return a_manifest(name="gen", kind=kind_that_writes(output), limits=limits)


def kind_that_writes(output: int | None) -> Kind:
    return Kind.EMBEDDER if output is None else Kind.GENERATOR


@pytest.mark.parametrize("output", [None, 512])
def test_a_description_says_what_the_manifest_says(output: int | None) -> None:
    given = manifest(output)
    described = Description.of(given)
    assert described == Description(
        "gen@1.0.0", given.kind, given.digest(), 2048, output, given.embedding_space
    )
    assert (described.embedding_space is None) is (given.kind is not Kind.EMBEDDER)
    assert described.fingerprint == f"gen@1.0.0+{manifest(output).digest()[:8]}"


@pytest.mark.parametrize("phase", Phase)
def test_only_the_phase_ready_is_ready(phase: Phase) -> None:
    assert post("gen@1", phase=phase).report.ready is (phase is Phase.READY)


def test_a_post_survives_pickling() -> None:
    sent = post("gen@1")
    assert pickle.loads(pickle.dumps(sent)) == sent
