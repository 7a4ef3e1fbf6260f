import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from modelyard.artifacts.importing.importer import Imported
from modelyard.artifacts.manifest import read_manifest
from modelyard.artifacts.verify import files_under, verify
from modelyard.contract.errors import ArtifactError

Import = Callable[..., Imported]


def flip(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.seek(-4, os.SEEK_END)
        byte = stream.read(1)
        stream.seek(-4, os.SEEK_END)
        stream.write(bytes([byte[0] ^ 1]))


def answers(text: str) -> Callable[[Path], None]:
    def record(folder: Path) -> None:
        (folder / "golden.json").write_text(text)

    return record


@pytest.mark.parametrize("damage", [flip, Path.unlink, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_damaged_version_is_said_and_imported_anew(
    bring: Import, bert: Path, said: list[str], damage: Callable[[Path], None], name: str
) -> None:
    first = bring(bert, record=answers("{}"))
    damage(first.folder / name)
    again = bring(bert, record=answers("another recording"))
    assert (again.made, again.manifest) == (True, first.manifest)
    verify(again.folder, read_manifest(again.folder))
    assert f"is damaged ({first.folder / name}: expected " in said[-2]
    assert {path.name for path in first.folder.parent.iterdir()} == {".lock", "1"}
    assert not bring(bert, record=answers("{}")).made


def test_damaged_golden_answers_are_recorded_again(bring: Import, bert: Path) -> None:
    first = bring(bert, record=answers("{}"))
    golden = first.folder / "golden.json"
    golden.write_text("[]")
    with pytest.raises(ArtifactError, match=r"its digest would be .*a new --version"):
        bring(bert, record=answers("{ }"))
    with pytest.raises(ArtifactError, match=r"its digest would be .*a new --version"):
        bring(bert)
    assert golden.read_text() == "[]"
    assert bring(bert, record=answers("{}")).made
    verify(first.folder, first.manifest)


def test_another_model_never_replaces_a_damaged_one(bring: Import, bert: Path) -> None:
    first = bring(bert)
    flip(first.folder / "model.safetensors")
    with pytest.raises(ArtifactError, match="another license"):
        bring(bert, license="Apache-2.0")
    with pytest.raises(ArtifactError, match="expected sha256"):
        verify(first.folder, first.manifest)


def test_a_file_that_lies_there_too_much_is_left_to_a_person(bring: Import, bert: Path) -> None:
    first = bring(bert)
    shutil.copyfile(bert / "config.json", first.folder / "adapter_config.json")
    with pytest.raises(ArtifactError, match="does not list: remove the file"):
        bring(bert)
    assert "adapter_config.json" in files_under(first.folder)


def test_a_manifest_that_cannot_be_read_is_said(bring: Import, bert: Path) -> None:
    first = bring(bert)
    (first.folder / "manifest.json").write_text("{")
    with pytest.raises(ArtifactError, match=r"remove the folder, and import it again$"):
        bring(bert)
