import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from modelyard.artifacts.manifest import MANIFEST_NAME, Identity
from modelyard.artifacts.starter import prepare as starter
from modelyard.artifacts.starter.recipe import VERSION, Recipe, Source
from modelyard.cli import models as under_test
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import an_identity
from modelyard.testing.tiny_model import write_tiny_files

runner = CliRunner()


def build(folder: Path) -> Identity:
    identity = an_identity(version=VERSION)
    write_tiny_files(folder, identity)
    return identity


def fail(folder: Path) -> Identity:
    raise ArtifactError("tiny: accuracy 0.5, expected at least 0.85")


def use(monkeypatch: pytest.MonkeyPatch, recipe: Recipe) -> None:
    for module in (starter, under_test):
        monkeypatch.setattr(module, "RECIPES", (recipe,))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Recipe:
    recipe = Recipe("tiny", Kind.EMBEDDER, Source("pytest", "pytest"), build)
    use(monkeypatch, recipe)
    return recipe


def run(*arguments: str) -> tuple[int, str]:
    result = runner.invoke(under_test.app, list(arguments))
    return result.exit_code, result.output


def test_prepare_makes_then_finds(tmp_path: Path, tiny: Recipe) -> None:
    code, output = run("prepare", "--models", str(tmp_path))
    assert (code, output.split()[:2]) == (0, ["made", "tiny@1.0.0"])
    code, output = run("prepare", "--models", str(tmp_path), "--only", "tiny", "--verify")
    assert (code, output.split()[:2]) == (0, ["present", "tiny@1.0.0"])


def test_the_default_folder_is_that_of_the_settings(
    tmp_path: Path, tiny: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    assert run("prepare")[0] == 0
    assert (tmp_path / "models/tiny" / VERSION / "manifest.json").is_file()


def test_an_unknown_name_exits_1_and_lists_the_known_ones(tmp_path: Path, tiny: Recipe) -> None:
    code, output = run("prepare", "--models", str(tmp_path), "--only", "gpt-9")
    assert code == 1
    assert "choose from tiny" in output


def test_a_failed_build_exits_1_with_its_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Recipe("tiny", Kind.EMBEDDER, Source("pytest", "pytest"), fail))
    assert run("prepare", "--models", str(tmp_path)) == (
        1,
        "tiny: accuracy 0.5, expected at least 0.85\n",
    )


def test_list_exits_1_while_one_is_missing(tmp_path: Path, tiny: Recipe) -> None:
    code, output = run("list", "--models", str(tmp_path))
    assert code == 1
    assert "missing: run `modelyard models prepare`" in output
    run("prepare", "--models", str(tmp_path))
    assert run("list", "--models", str(tmp_path))[0] == 0


def test_list_as_json(tmp_path: Path, tiny: Recipe) -> None:
    run("prepare", "--models", str(tmp_path))
    (record,) = json.loads(run("list", "--models", str(tmp_path), "-o", "json")[1])
    assert record["name"] == "tiny@1.0.0"
    assert record["kind"] == "embedder"
    assert record["present"] is True
    files = [path for path in (tmp_path / "tiny" / VERSION).iterdir() if path.name != MANIFEST_NAME]
    assert record["size_bytes"] == sum(path.stat().st_size for path in files)
    assert len(record["digest"]) == 64


def test_the_command_imports_no_heavy_library() -> None:
    heavy = "{'torch', 'transformers', 'tokenizers', 'gguf', 'numpy', 'ray', 'vllm'}"
    program = f"import sys, modelyard.cli.models; print(sorted({heavy} & sys.modules.keys()))"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
