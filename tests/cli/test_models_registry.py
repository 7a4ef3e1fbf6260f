import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from modelyard.artifacts.manifest import read_manifest
from modelyard.cli import models
from modelyard.testing.tiny_model import write_tiny_model


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_model(tmp_path / "made")
    return tmp_path / "made"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(models.app, [str(each) for each in arguments])
    return result.exit_code, result.output


def test_push_list_show_pull_and_verify(folder: Path, tmp_path: Path, home: Path) -> None:
    digest = read_manifest(folder).digest()
    store = (tmp_path / "store").as_uri()
    assert run("push", folder, store) == (0, f"pushed  {store}/tiny/1.0.0  {digest}\n")
    code, listed = run("list", "--store", store, "-o", "json")
    (record,) = json.loads(listed)
    assert (code, record["name"], record["digest"]) == (0, "tiny@1.0.0", digest)
    code, shown = run("show", "tiny", "--store", store, "-o", "json")
    assert (code, json.loads(shown)["digest"]) == (0, digest)
    assert run("pull", f"{store}/tiny/1.0.0")[0] == 0
    target = home / "models/tiny/1.0.0"
    assert run("verify", target)[1].endswith(f"{digest}\n")
    assert run("verify", target.as_uri())[1].endswith(f"{digest}\n")
    assert run("show", "tiny@1.0.0")[1].splitlines()[1] == f"digest     {digest}"
    assert "tiny@1.0.0" in run("list")[1]


def test_push_refuses_a_folder_that_does_not_verify(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"cut")
    code, said = run("push", folder, (tmp_path / "store").as_uri())
    assert code == 1
    assert "model.safetensors: expected bytes" in said


def test_verify_tells_a_changed_byte(folder: Path) -> None:
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    code, said = run("verify", folder)
    assert code == 1
    assert "model.safetensors: expected sha256" in said


def test_show_of_several_versions_asks_for_one(tmp_path: Path) -> None:
    for version in ("1.0.0", "2.0.0"):
        write_tiny_model(tmp_path / "home/models/tiny" / version, version=version)
    code, said = run("show", "tiny")
    assert code == 1
    assert said.endswith("holds several versions, name one: tiny@1.0.0, tiny@2.0.0\n")


def test_a_version_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    for version in ("1.0.0", "2.0.0"):
        write_tiny_model(tmp_path / "store/tiny" / version, version=version)
    (tmp_path / "store/tiny/1.0.0/manifest.json").write_text("{}")
    code, said = run("list", "--store", (tmp_path / "store").as_uri())
    broken, whole = said.splitlines()
    assert code == 1
    assert "manifest.json: " in broken
    assert whole.startswith("tiny@2.0.0")


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    store = (tmp_path / "nothing").as_uri()
    assert run("list", "--store", store) == (0, f"{store}: no versions yet\n")


def test_a_store_that_is_not_there_is_no_empty_one() -> None:
    code, said = run("list", "--store", "file:///nowhere")
    assert (code, said) == (
        1,
        "/nowhere: no such folder: check the address of the store\n",
    )


def test_before_the_first_version_the_starter_models_are_listed_as_missing() -> None:
    code, listed = run("list")
    assert code == 1
    assert listed.count("missing: run `modelyard models prepare`") == len(listed.splitlines()) == 4


def test_a_damaged_file_in_the_store_is_repaired_and_named(folder: Path, tmp_path: Path) -> None:
    digest = read_manifest(folder).digest()
    store = (tmp_path / "store").as_uri()
    run("push", folder, store)
    stored = tmp_path / "store/tiny/1.0.0/model.safetensors"
    stored.write_bytes(bytes(stored.stat().st_size))
    assert run("push", folder, store) == (0, f"present  {store}/tiny/1.0.0  {digest}\n")
    assert run("push", folder, store, "--repair") == (
        0,
        f"repaired  {store}/tiny/1.0.0  {digest}\n  sent again: model.safetensors\n",
    )
    assert run("verify", f"{store}/tiny/1.0.0")[0] == 0


def test_a_damaged_copy_is_said_to_be_fetched_again(folder: Path, tmp_path: Path) -> None:
    digest = read_manifest(folder).digest()
    store = (tmp_path / "store").as_uri()
    run("push", folder, store)
    address, target = f"{store}/tiny/1.0.0", tmp_path / "copy"
    assert run("pull", address, target)[0] == 0
    (target / "model.safetensors").write_bytes(b"cut")
    code, said = run("pull", address, target)
    assert (code, said.splitlines()[-1]) == (0, f"damaged, fetched again  {target}  {digest}")
    assert run("verify", target)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("show", "nothing"), 1, "holds no 'nothing': run `modelyard models list`"),
        (("show", "./nothing"), 1, "nothing: no such folder: check the path"),
        (("show", ""), 1, "no version is named: write NAME@VERSION"),
        (("verify", ""), 1, "no version is named: write NAME@VERSION"),
        (("verify", "/nowhere"), 1, "/nowhere: no such folder: check the path"),
        (("show", "ftp://x/y/z"), 1, "write file:///absolute/folder or s3://bucket/prefix"),
        (("pull", "s3://bucket"), 1, "NAME/VERSION"),
        (("push", "/nowhere", "s3://bucket/m"), 1, "/nowhere: no such folder: check the path"),
        (("push", "/nowhere", "bucket"), 1, "not an address of a store"),
        (("list", "--store", "s3://b?x=1"), 1, "write s3://bucket/prefix"),
        (("list", "--store", "file:///x", "--models", "/x"), 2, "choose one of"),
        (("list", "-o", "xml"), 2, "xml"),
        (("push", "/nowhere"), 2, "Missing argument"),
    ],
)
def test_wrong_input_is_told(arguments: tuple[str, ...], code: int, words: str) -> None:
    got, said = run(*arguments)
    assert got == code
    assert words in said
    assert "Traceback" not in said
