import json
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from modelyard.artifacts.importing.recording import record as record_golden
from modelyard.artifacts.importing.snippet import app_entry, route_entry
from modelyard.artifacts.manifest import Device, Manifest, read_manifest
from modelyard.artifacts.store import resolve
from modelyard.cli import models, models_import
from modelyard.config.check import check_document
from modelyard.config.document import parse_document
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind
from modelyard.lifecycle.golden import EmbedderGolden, EmbedderPrompt, write_golden
from modelyard.testing.manifests import an_identity
from modelyard.testing.tiny_model import write_tiny_files, write_tiny_model

runner = CliRunner()
SERVE = Path(__file__).parents[2] / "configs" / "local.serve.yaml"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_tiny_files(tmp_path / "source", an_identity())
    return tmp_path / "source"


def run(source: Path | str, *options: str) -> tuple[int, str]:
    named = ["--name", "mine", "--version", "2", "--license", "mit"]
    result = runner.invoke(models.app, ["import", str(source), *named, *options])
    return result.exit_code, result.output


def config_of(folder: Path, manifest: Manifest, address: str) -> str:
    """The shipped config's ingress with this version behind it, and no other."""
    text = SERVE.read_text()
    routes = text.index("      routes:\n") + len("      routes:\n")
    rest = text.index("      # weight: a tenant's share")
    models = text.index("# A model app is named after")
    route = "".join(f"        {line}\n" for line in route_entry(manifest).splitlines())
    app = app_entry(folder, manifest, address)
    whole = f"{text[:routes]}{route}\n{text[rest:models]}{app}\n"
    return whole.replace("models: [support-embed, support-intent]", 'models: ["*"]')


@pytest.mark.parametrize(
    ("kind", "accelerators"),
    [*((kind, 0) for kind in Kind), (Kind.EMBEDDER, 1), *((Kind.GENERATOR, n) for n in (1, 2, 4))],
)
def test_what_is_printed_to_paste_passes_the_check(
    kind: Kind, accelerators: int, home: Path
) -> None:
    folder = home / "models/tiny/1.0.0"
    device = Device(accelerators=accelerators, min_memory_gb=4)
    manifest = write_tiny_model(folder, kind=kind, device=device)
    address = "file://~/.modelyard/models/tiny/1.0.0"
    document = parse_document(config_of(folder, manifest, address), "c.yaml")
    report = check_document(document, partial(resolve, home=home))
    # No answers were recorded for it, which is all there is to warn of.
    assert [str(one) for one in report.faults if "has no golden.json" not in one.message] == []
    assert report.apps == 3


def test_an_import_says_what_it_made_and_how_to_serve_it(home: Path, source: Path) -> None:
    code, output = run(source, "--no-golden")
    assert code == 0, output
    manifest = read_manifest(home / "models/mine/2")
    assert f"made  mine@2  embedder  0.3 MB  {manifest.digest()}" in output
    assert "warning: no golden prompts" in output
    assert "artifact: file://~/.modelyard/models/mine/2\n" in output
    assert f"digest: {manifest.digest()}\n" in output
    assert "mine: {stable: mine@2}" in output
    code, output = run(source, "--no-golden")
    assert (code, output.split()[0]) == (0, "present")


def test_it_is_pushed_and_served_from_there(home: Path, source: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    code, output = run(source, "--no-golden", "--to", store.as_uri())
    assert code == 0, output
    assert read_manifest(store / "mine/2") == read_manifest(home / "models/mine/2")
    assert f"artifact: {store.as_uri()}/mine/2\n" in output


@pytest.mark.parametrize("to", ["zzz", "s3://B/x", "s3://nobucket/x"])
def test_a_store_that_is_none_is_said_before_the_copy(
    home: Path, source: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoBucket:
        def versions(self, name: str) -> list[str]:
            raise ArtifactError(f"s3://nobucket/x/{name}: the store answered 404 NoSuchBucket")

    if to == "s3://nobucket/x":
        monkeypatch.setattr(models_import, "open_store", lambda uri, home: NoBucket())
    (source / "model.safetensors").write_bytes(b"damaged: what is copied is refused for it")
    code, output = run(source, "--no-golden", "--to", to)
    assert (code, output.count("\n")) == (1, 1)
    assert "store " in output
    assert not home.exists()


def test_golden_answers_are_shown_to_be_looked_at(
    home: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = tmp_path / "p.json"
    questions.write_text(json.dumps([{"id": name, "text": f"Text {name}"} for name in "ab"]))

    def record(folder: Path, prompts: Path | None) -> None:
        assert prompts == questions
        vectors = {"a": (1.0, 0.0), "b": (0.6, 0.8)}
        asked = tuple(
            EmbedderPrompt(id=name, text=f"Text {name}", token_ids=(2, 3), expected=vector)
            for name, vector in vectors.items()
        )
        write_golden(folder, EmbedderGolden(prompts=asked))

    monkeypatch.setattr(models_import, "record", record)
    code, output = run(source, "--golden", str(questions))
    assert code == 0, output
    assert "Are they right?\n  a: 'Text a' -> 2 dimensions, cosine 0.60 to b\n" in output
    assert read_manifest(home / "models/mine/2").warmup.golden_sha256 is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "check the path"),
        ("[{", "Invalid JSON"),
        ('[{"id": "a", "query": "q", "documents": ["d"]}]', "0.text: Field required"),
    ],
)
def test_golden_prompts_of_another_kind_are_refused_before_the_copy(
    home: Path, source: Path, tmp_path: Path, text: str | None, words: str
) -> None:
    questions = tmp_path / "p.json"
    if text is not None:
        questions.write_text(text)
    (source / "model.safetensors").write_bytes(b"damaged: what is copied is refused for it")
    code, output = run(source, "--golden", str(questions))
    assert (code, output.count("\n")) == (1, 1)
    assert str(questions) in output
    assert words in output


@pytest.mark.slow
def test_the_golden_answers_are_the_models_own(home: Path, source: Path) -> None:
    code, output = run(source)
    assert code == 0, output
    assert "  short: 'Where is my order?' -> 64 dimensions, cosine " in output


def test_a_recording_that_fails_says_the_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nfor i in 1 2 3 4 5 6; do echo line $i; done\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(ArtifactError, match=r"(?s)exit code 3.*self-test:\nline 2\n.*line 6$"):
        record_golden(tmp_path)


def test_what_cannot_be_imported_is_one_sentence_and_exit_code_1(home: Path) -> None:
    code, output = run("nowhere")
    assert (code, output.count("\n")) == (1, 1)
    assert "no such folder or file" in output


@pytest.mark.slow
def test_vllm_is_asked_what_it_runs(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "generator"
    write_tiny_files(folder, an_identity(kind=Kind.GENERATOR))
    record = json.loads((folder / "config.json").read_text())
    changed = record | {"architectures": ["OddForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(changed))
    code, output = run(folder, "--no-golden")
    assert code == 1
    assert "does not run OddForCausalLM" in output


def test_golden_and_no_golden_together_are_wrong_usage(home: Path, source: Path) -> None:
    assert run(source, "--golden", "p.json", "--no-golden")[0] == 2
