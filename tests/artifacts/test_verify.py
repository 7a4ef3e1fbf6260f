import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.artifacts.manifest import Limits, Manifest, read_manifest
from modelyard.artifacts.package import write_manifest
from modelyard.artifacts.verify import PICKLE_SUFFIXES, verify
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

DRAFT = Manifest(
    schema="modelyard/manifest/v1",
    name="m",
    version="1.0.0",
    kind=Kind.EMBEDDER,
    license="MIT",
    source="here",
    limits=Limits(max_context_tokens=8),
    files=(),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text("{}")
    (tmp_path / "config.json").write_text('{"a": 1}')
    (tmp_path / "model.safetensors").write_bytes(b"weights" * 400_000)  # more than one chunk
    return tmp_path


def test_a_packaged_folder_verifies_and_reads_back(folder: Path) -> None:
    manifest = write_manifest(folder, DRAFT)
    assert [file.path for file in manifest.files] == [
        "1_Pooling/config.json",
        "config.json",
        "model.safetensors",
    ]
    assert read_manifest(folder) == manifest
    verify(folder, manifest)


def test_packaging_twice_writes_the_same_bytes(folder: Path) -> None:
    write_manifest(folder, DRAFT)
    first = (folder / "manifest.json").read_bytes()
    write_manifest(folder, DRAFT)
    assert (folder / "manifest.json").read_bytes() == first


def test_a_flipped_byte_names_the_file_and_both_hashes(folder: Path) -> None:
    manifest = write_manifest(folder, DRAFT)
    weights = folder / "model.safetensors"
    expected = hashlib.sha256(weights.read_bytes()).hexdigest()
    weights.write_bytes(b"Weights" + weights.read_bytes()[7:])
    got = hashlib.sha256(weights.read_bytes()).hexdigest()
    with pytest.raises(ArtifactError, match=rf"model\.safetensors.*{expected}.*{got}"):
        verify(folder, manifest)


def test_a_flipped_byte_passes_the_check_of_sizes_alone(folder: Path) -> None:
    manifest = write_manifest(folder, DRAFT)
    (folder / "config.json").write_text('{"a": 2}')
    verify(folder, manifest, hashes=False)


@given(cut=st.integers(0, 7))
def test_a_file_cut_short_is_found_by_its_size(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    (folder / "config.json").write_bytes(b"12345678")
    manifest = write_manifest(folder, DRAFT)
    (folder / "config.json").write_bytes(b"12345678"[:cut])
    with pytest.raises(ArtifactError, match=rf"config\.json: expected bytes 8, got {cut}"):
        verify(folder, manifest, hashes=False)


def test_a_missing_file_is_named(folder: Path) -> None:
    manifest = write_manifest(folder, DRAFT)
    (folder / "1_Pooling/config.json").unlink()
    with pytest.raises(ArtifactError, match=r"1_Pooling/config\.json: .*No such file"):
        verify(folder, manifest)


def test_weights_that_are_not_listed_are_refused(folder: Path) -> None:
    manifest = write_manifest(folder, DRAFT)
    (folder / "extra.safetensors").write_bytes(b"x")
    with pytest.raises(ArtifactError, match=r"extra\.safetensors.*m@1\.0\.0"):
        verify(folder, manifest)


def test_a_readme_that_is_not_listed_is_no_fault(folder: Path) -> None:
    manifest = write_manifest(folder, DRAFT)
    (folder / "README.md").write_text("hello")
    verify(folder, manifest)


@pytest.mark.parametrize("suffix", sorted(PICKLE_SUFFIXES | {".BIN"}))
def test_weights_that_run_code_are_never_packaged(folder: Path, suffix: str) -> None:
    (folder / f"model{suffix}").write_bytes(b"x")
    with pytest.raises(ArtifactError, match="safetensors"):
        write_manifest(folder, DRAFT)
    assert not (folder / "manifest.json").exists()


def test_weights_that_run_code_are_refused_beside_a_good_manifest(folder: Path) -> None:
    manifest = write_manifest(folder, DRAFT)
    (folder / "1_Pooling/pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(ArtifactError, match=r"1_Pooling/pytorch_model\.bin"):
        verify(folder, manifest, hashes=False)


def test_a_name_that_a_manifest_cannot_hold_is_refused(folder: Path) -> None:
    (folder / "my notes.txt").write_text("x")
    with pytest.raises(ArtifactError, match="my notes"):
        write_manifest(folder, DRAFT)
