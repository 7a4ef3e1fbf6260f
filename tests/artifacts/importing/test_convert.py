import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelyard.artifacts.importing import convert as command
from modelyard.artifacts.importing.convert import convert as convert_here
from modelyard.artifacts.importing.importer import Imported
from modelyard.contract.errors import ArtifactError

Import = Callable[..., Imported]


def pickled(folder: Path) -> Path:
    """The same weights as transformers saved them before safetensors."""
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def convert(*arguments: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "modelyard.artifacts.importing.convert", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_that_the_refusal_names_works(
    bring: Import, llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors.torch import load_file

    before: dict[str, Any] = load_file(llama / "model.safetensors")
    source = pickled(llama)
    with pytest.raises(ArtifactError, match=r"importing.convert FOLDER NEW_FOLDER"):
        bring(source)
    # In this process: a second one would import torch and transformers again, for half a minute.
    monkeypatch.setattr(sys, "argv", ["convert", str(source), str(tmp_path / "new")])
    command.main()
    after = load_file(bring(tmp_path / "new").folder / "model.safetensors")
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_a_pickle_that_runs_code_is_not_converted(llama: Path, tmp_path: Path) -> None:
    import torch

    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "ran",)

    source = pickled(llama)
    torch.save({"x": Evil()}, source / "pytorch_model.bin")
    with pytest.raises(ArtifactError, match="holds more than tensors"):
        convert_here(source, tmp_path / "new")
    assert not (tmp_path / "ran").exists()


def test_wrong_usage_and_a_missing_folder_are_said(tmp_path: Path) -> None:
    assert "usage:" in convert(tmp_path).stderr
    assert "config.json: expected a readable file" in convert(tmp_path, tmp_path / "new").stderr
