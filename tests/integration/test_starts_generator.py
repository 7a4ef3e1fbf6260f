"""Broken versions of a real generator: each is stopped at the right phase with the right words."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modelyard.artifacts.manifest import MANIFEST_NAME
from modelyard.lifecycle.phases import Phase
from tests.integration.repackaging import WEIGHTS, rehash, repackage, rewrite_weights

pytestmark = [pytest.mark.integration, pytest.mark.slow]
NAME = "smollm2-135m-instruct"
SCRIPT = Path(__file__).with_name("start_alone.py")


@pytest.fixture
def folder(starter_models: Path, tmp_path: Path) -> Path:
    """A copy that a test may break, and whose warm-up is short."""
    copy = tmp_path / NAME / "1.0.0"
    shutil.copytree(starter_models / NAME / "1.0.0", copy)
    record = json.loads((copy / MANIFEST_NAME).read_bytes())
    record["warmup"]["prompts"] = ["short"]
    (copy / MANIFEST_NAME).write_text(json.dumps(record))
    return copy


def started(folder: Path, tmp_path: Path) -> tuple[str, str]:
    """The phase it came to, and the cause."""
    with (tmp_path / "errors").open("w") as errors:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(folder)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
            timeout=600,
            env=os.environ | {"MODELYARD_HOME": str(tmp_path / "home")},
        )
    assert done.returncode == 0, (tmp_path / "errors").read_text()[-2000:]
    phase, cause = json.loads(done.stdout.strip().splitlines()[-1])
    return phase, cause


def test_the_version_as_it_is_packaged_starts(folder: Path, tmp_path: Path) -> None:
    assert started(folder, tmp_path) == (Phase.READY, "")


def test_one_weight_byte_under_a_new_digest(folder: Path, tmp_path: Path) -> None:
    """The exponent of one number of the last norm, which every token passes through."""
    import torch

    def change(tensors: dict[str, Any]) -> None:
        # 0x3f before: 65536 times as much. A byte that only took the channel away would pass: one
        # of 576 moves no log-probability by the tolerance.
        tensors["model.norm.weight"].view(torch.uint8)[2 * 7 + 1] = 0x47

    rewrite_weights(folder, change)
    repackage(folder)
    phase, cause = started(folder, tmp_path)
    assert phase == Phase.SELF_TEST, cause
    assert cause.startswith("SelfTest: golden prompt ")
    assert "expected" in cause
    assert "got" in cause


def test_weights_that_are_nan(folder: Path, tmp_path: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        tensors["model.norm.weight"][:] = float("nan")

    rewrite_weights(folder, change)
    rehash(folder)
    phase, cause = started(folder, tmp_path)
    assert phase in (Phase.WARMING, Phase.SELF_TEST), cause
    assert "no numbers" in cause or "no finite numbers" in cause


def test_a_swapped_tokenizer(folder: Path, tmp_path: Path) -> None:
    path = folder / "tokenizer.json"
    record = json.loads(path.read_text())
    vocabulary = record["model"]["vocab"]
    one, other = "\u0120capital", "\u0120country"
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    path.write_text(json.dumps(record, ensure_ascii=False))
    repackage(folder)
    phase, cause = started(folder, tmp_path)
    assert phase == Phase.SELF_TEST, cause
    assert "golden prompt capital: the tokenizer or the chat template gives other ids" in cause


def test_a_changed_template(folder: Path, tmp_path: Path) -> None:
    path = folder / "chat_template.jinja"
    path.write_text(path.read_text() + " ")
    repackage(folder)
    phase, cause = started(folder, tmp_path)
    assert phase == Phase.SELF_TEST, cause
    assert "the tokenizer or the chat template gives other ids" in cause


def test_a_template_that_is_not_the_manifests(folder: Path, tmp_path: Path) -> None:
    path = folder / "chat_template.jinja"
    path.write_text(path.read_text() + " ")
    rehash(folder)
    phase, cause = started(folder, tmp_path)
    assert phase == Phase.VERIFYING
    assert "template" in cause


def test_a_wrong_dtype(folder: Path, tmp_path: Path) -> None:
    import torch

    def change(tensors: dict[str, Any]) -> None:
        for name, tensor in tensors.items():
            tensors[name] = tensor.to(torch.float16)

    rewrite_weights(folder, change)
    rehash(folder)
    phase, cause = started(folder, tmp_path)
    assert phase == Phase.VERIFYING
    assert "dtype" in cause
    assert "float16" in cause


def test_a_truncated_file(folder: Path, tmp_path: Path) -> None:
    path = folder / WEIGHTS
    path.write_bytes(path.read_bytes()[:-1000])
    phase, cause = started(folder, tmp_path)
    assert phase == Phase.VERIFYING
    assert "expected bytes" in cause
