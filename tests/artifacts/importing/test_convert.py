import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelyard.artifacts.importing import convert as command
from modelyard.artifacts.importing.convert import convert as convert_here
from modelyard.artifacts.importing.importer import Imported
from modelyard.artifacts.verify import files_under
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


def sentence_model(folder: Path, **pooling: bool) -> Path:
    """As sentence-transformers saves it, with the files that transformers does not know."""
    modules = [{"path": "", "type": "a.Transformer"}, {"path": "1_Pooling", "type": "a.Pooling"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 48}')
    (folder / "config_sentence_transformers.json").write_text("{}")
    return pickled(folder)


def test_what_tells_how_a_sentence_is_read_is_converted_too(
    bring: Import, bert: Path, tmp_path: Path
) -> None:
    source = sentence_model(bert, pooling_mode_mean_tokens=True)
    convert_here(source, tmp_path / "new")
    sides = files_under(source) - {"pytorch_model.bin"}
    assert files_under(tmp_path / "new") == sides | {"model.safetensors"}
    assert all((tmp_path / "new" / s).read_bytes() == (source / s).read_bytes() for s in sides)
    assert bring(tmp_path / "new").manifest.limits.max_context_tokens == 48


def test_other_pooling_is_still_refused_after_it(bring: Import, bert: Path, tmp_path: Path) -> None:
    convert_here(sentence_model(bert, pooling_mode_cls_token=True), tmp_path / "new")
    with pytest.raises(ArtifactError, match="pools by its first token"):
        bring(tmp_path / "new")


def test_a_generators_side_files_are_converted_too(llama: Path, tmp_path: Path) -> None:
    (llama / "generation_config.json").write_text('{"temperature": 0.3}')
    (llama / "added_tokens.json").write_text("{}")
    convert_here(pickled(llama), tmp_path / "new")
    for name in ("generation_config.json", "added_tokens.json", "chat_template.jinja"):
        assert (tmp_path / "new" / name).read_bytes() == (llama / name).read_bytes()


@pytest.mark.parametrize("data", [b"", b"PK\3\4torn"])
def test_a_torn_pickle_is_refused_in_words(llama: Path, tmp_path: Path, data: bytes) -> None:
    (pickled(llama) / "pytorch_model.bin").write_bytes(data)
    with pytest.raises(ArtifactError, match="fetch the model again"):
        convert_here(llama, tmp_path / "new")


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
