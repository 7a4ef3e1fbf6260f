from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.artifacts.manifest import File, Limits, Manifest, read_manifest
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

_SHA = "0" * 64


def manifest(*files: File, **changes: object) -> Manifest:
    record: dict[str, object] = {
        "schema": "modelyard/manifest/v1",
        "name": "m",
        "version": "1.0.0",
        "kind": Kind.EMBEDDER,
        "license": "MIT",
        "source": "here",
        "limits": Limits(max_context_tokens=8),
        "files": files,
    }
    return Manifest.model_validate(record | changes)


@pytest.mark.parametrize("path", ["../x", "a/../x", ".", "a/./b", "/etc/passwd", "a//b", ""])
def test_a_path_cannot_lead_out_of_the_folder(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        File(path=path, size_bytes=1, sha256=_SHA)


def test_a_file_is_listed_once() -> None:
    one = File(path="a.txt", size_bytes=1, sha256=_SHA)
    with pytest.raises(ValueError, match=r"'a.txt' twice"):
        manifest(one, one)


def test_the_manifest_does_not_list_itself() -> None:
    with pytest.raises(ValueError, match=r"manifest\.json"):
        manifest(File(path="manifest.json", size_bytes=1, sha256=_SHA))


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_the_digest_changes_exactly_when_the_content_does(a: int, b: int) -> None:
    left = manifest(File(path="w.safetensors", size_bytes=a, sha256=_SHA)).digest()
    right = manifest(File(path="w.safetensors", size_bytes=b, sha256=_SHA)).digest()
    assert (left == right) == (a == b)


def test_a_missing_manifest_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="models prepare"):
        read_manifest(tmp_path)


def test_a_wrong_field_is_named(tmp_path: Path) -> None:
    text = manifest().model_dump_json(by_alias=True).replace('"embedder"', '"toaster"')
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"manifest\.json: kind: "):
        read_manifest(tmp_path)
