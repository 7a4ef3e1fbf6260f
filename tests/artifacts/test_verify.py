import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelyard.artifacts.manifest import Manifest
from modelyard.artifacts.verify import CODE_SUFFIXES, PICKLE_SUFFIXES, Damaged, verify
from modelyard.contract.errors import ArtifactError
from modelyard.testing.tiny_model import write_tiny_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text("{}")
    return tmp_path


@pytest.fixture
def manifest(folder: Path) -> Manifest:
    return write_tiny_model(folder)


def test_a_packaged_folder_is_what_its_manifest_says(folder: Path, manifest: Manifest) -> None:
    verify(folder, manifest)


def test_a_flipped_byte_names_the_file_and_both_hashes(folder: Path, manifest: Manifest) -> None:
    weights = folder / "model.safetensors"
    expected = hashlib.sha256(weights.read_bytes()).hexdigest()
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    got = hashlib.sha256(weights.read_bytes()).hexdigest()
    with pytest.raises(ArtifactError, match=rf"model\.safetensors.*{expected}.*{got}"):
        verify(folder, manifest)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_any_one_byte_changed_in_any_file_is_found(
    data: st.DataObject, folder: Path, manifest: Manifest
) -> None:
    file = data.draw(st.sampled_from(manifest.files))
    place = data.draw(st.integers(0, file.size_bytes - 1))
    path = folder / file.path
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(changed)
    try:
        with pytest.raises(ArtifactError, match=rf"{file.path}: expected sha256 {file.sha256}"):
            verify(folder, manifest)
    finally:
        path.write_bytes(whole)


def test_a_flipped_byte_passes_the_check_of_sizes_alone(folder: Path, manifest: Manifest) -> None:
    (folder / "1_Pooling/config.json").write_text("[]")
    verify(folder, manifest, hashes=False)


@given(cut=st.integers(0, 1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_cut_short_is_found_by_its_size(cut: int, folder: Path, manifest: Manifest) -> None:
    (folder / "1_Pooling/config.json").write_bytes(b"{}"[:cut])
    with pytest.raises(ArtifactError, match=rf"config\.json: expected bytes 2, got {cut}"):
        verify(folder, manifest, hashes=False)


def test_a_missing_file_is_named(folder: Path, manifest: Manifest) -> None:
    (folder / "1_Pooling/config.json").unlink()
    with pytest.raises(ArtifactError, match=r"1_Pooling/config\.json: .*No such file"):
        verify(folder, manifest)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("extra.safetensors", "weights"),
        ("extra.gguf", "weights"),
        ("generation_config.json", "settings"),
        ("adapter_config.json", "settings"),
        ("chat_template.jinja", "settings"),
    ],
)
def test_what_a_loader_would_take_and_is_not_listed_is_refused(
    name: str, what: str, folder: Path, manifest: Manifest
) -> None:
    (folder / name).write_bytes(b"{}")
    with pytest.raises(ArtifactError, match=rf"{name}: {what} that .* tiny@1\.0\.0 does not list"):
        verify(folder, manifest)


@pytest.mark.parametrize("name", ["README.md", "golden.json"])
def test_what_nobody_loads_need_not_be_listed(name: str, folder: Path, manifest: Manifest) -> None:
    (folder / name).write_text("hello")
    verify(folder, manifest)


@pytest.mark.parametrize("suffix", sorted(PICKLE_SUFFIXES | CODE_SUFFIXES | {".BIN"}))
def test_what_could_run_code_is_refused_by_name_beside_a_good_manifest(
    folder: Path, manifest: Manifest, suffix: str
) -> None:
    (folder / f"1_Pooling/modeling_tiny{suffix}").write_bytes(b"x")
    words = rf"1_Pooling/modeling_tiny\{suffix}: \{suffix.lower()} .* code"
    with pytest.raises(ArtifactError, match=words):
        verify(folder, manifest, hashes=False)


@pytest.mark.parametrize("contents", [b"shorter", None])
def test_only_other_bytes_are_called_damaged(
    folder: Path, manifest: Manifest, contents: bytes | None
) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[::-1] if contents is None else contents)
    with pytest.raises(Damaged):
        verify(folder, manifest)


def test_a_file_that_cannot_be_read_or_lies_there_too_much_is_not_damage(
    folder: Path, manifest: Manifest
) -> None:
    (folder / "model.safetensors").rename(folder / "more.safetensors")
    with pytest.raises(ArtifactError, match="does not list") as too_much:
        verify(folder, manifest)
    (folder / "more.safetensors").rename(folder.parent / "elsewhere")
    with pytest.raises(ArtifactError, match="No such file") as missing:
        verify(folder, manifest)
    assert Damaged not in {type(too_much.value), type(missing.value)}
