import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelyard.artifacts.contents import verify_contents
from modelyard.artifacts.file_lock import FileLock
from modelyard.artifacts.importing.importer import Imported
from modelyard.artifacts.manifest import read_manifest
from modelyard.artifacts.verify import files_under, verify
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

Import = Callable[..., Imported]


def change(path: Path, **changes: Any) -> None:
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | changes))


def test_a_generator_as_transformers_saves_it(bring: Import, llama: Path, said: list[str]) -> None:
    made = bring(llama, tool_call_parser="hermes")
    manifest = read_manifest(made.folder)
    verify(made.folder, manifest)
    verify_contents(made.folder, manifest)
    assert made.made
    assert manifest == made.manifest
    assert manifest.kind is Kind.GENERATOR
    assert manifest.license == "mit"
    assert manifest.source == "llama"
    limits = manifest.limits
    assert (limits.max_context_tokens, limits.max_output_tokens, limits.drain_s) == (64, 16, 31)
    assert manifest.runtime.engine_args.tool_call_parser == "hermes"
    assert (manifest.runtime.engine, manifest.runtime.version) == ("vllm", "==0.32.*")
    assert (manifest.weights.dtype, manifest.runtime.dtype) == ("float32", "bfloat16")
    assert manifest.device.accelerators == 0
    assert said == ["left behind, serving does not need them: README.md"]


def test_a_thousand_tokens_of_output_get_the_seeds_drain_time(bring: Import, llama: Path) -> None:
    change(llama / "config.json", max_position_embeddings=8192)
    limits = bring(llama).manifest.limits
    assert (limits.max_output_tokens, limits.drain_s) == (1024, 35 + 30)


def test_an_embedder_is_as_long_as_its_shortest_bound(bring: Import, bert: Path) -> None:
    (bert / "sentence_bert_config.json").write_text('{"max_seq_length": 48}')
    manifest = bring(bert).manifest
    assert manifest.kind is Kind.EMBEDDER
    assert manifest.limits.max_context_tokens == 48
    assert manifest.embedding_space == "m@1"
    assert manifest.runtime.version == "==2.13.*"


def test_heads_of_many_labels_and_of_one(bring: Import, classifier: Callable[..., Path]) -> None:
    manifest = bring(classifier("refund", "order", "human")).manifest
    assert (manifest.kind, manifest.labels) == (Kind.CLASSIFIER, ("refund", "order", "human"))
    reranker = bring(classifier("relevant"), name="r").manifest
    assert (reranker.kind, reranker.score_kind) == (Kind.RERANKER, "cross-encoder")


def test_an_encoder_ranks_as_a_bi_encoder_unless_told(bring: Import, bert: Path) -> None:
    assert bring(bert, kind=Kind.RERANKER).manifest.score_kind == "bi-encoder"
    late = bring(bert, kind=Kind.RERANKER, score_kind="late-interaction", name="late")
    assert late.manifest.score_kind == "late-interaction"


def test_shards_are_kept_as_they_are(bring: Import, llama: Path) -> None:
    from transformers import LlamaForCausalLM

    model: Any = LlamaForCausalLM.from_pretrained(llama)
    (llama / "model.safetensors").unlink()
    model.save_pretrained(llama, max_shard_size="50KB")
    shards = sorted(path.name for path in llama.glob("model-*.safetensors"))
    assert len(shards) > 1
    made = bring(llama)
    assert {*shards, "model.safetensors.index.json"} <= files_under(made.folder)
    (llama / shards[0]).unlink()
    with pytest.raises(ArtifactError, match=f"names {shards[0]}, which is not there"):
        bring(llama, name="torn")


def test_a_version_does_not_change_when_its_source_does(bring: Import, bert: Path) -> None:
    made = bring(bert)
    with (bert / "model.safetensors").open("r+b") as stream:
        stream.seek(-4, 2)
        stream.write(b"\0\0\0\0")
    verify(made.folder, made.manifest)


def test_the_same_again_is_nothing_and_other_bytes_are_refused(bring: Import, bert: Path) -> None:
    first = bring(bert)
    again = bring(bert)
    assert (again.made, again.manifest) == (False, first.manifest)
    with pytest.raises(ArtifactError, match=r"another license, .*new --version"):
        bring(bert, license="Apache-2.0")
    assert read_manifest(first.folder) == first.manifest


def test_golden_answers_are_recorded_from_the_packaged_folder(bring: Import, bert: Path) -> None:
    def record(folder: Path) -> None:
        assert read_manifest(folder).warmup.golden_sha256 is None
        (folder / "golden.json").write_text("{}")

    made = bring(bert, record=record)
    assert made.manifest.warmup.golden_sha256 is not None
    assert not bring(bert, record=lambda folder: pytest.fail("recorded twice")).made


def test_what_cannot_be_asked_is_said_before_a_byte_is_copied(
    bring: Import, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(kind: Kind) -> None:
        raise ArtifactError(f"no questions for {kind}s")

    monkeypatch.setattr(shutil, "copyfile", lambda *paths: pytest.fail("copied"))
    with pytest.raises(ArtifactError, match="no questions for embedders"):
        bring(bert, check_questions=refuse)


def test_an_import_that_fails_leaves_nothing(bring: Import, bert: Path, tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise ArtifactError("it says nothing sensible")

    with pytest.raises(ArtifactError, match="sensible"):
        bring(bert, record=fail)
    assert list((tmp_path / "models").iterdir()) == []


def test_the_folder_of_other_versions_and_its_lock_stay(
    bring: Import, bert: Path, tmp_path: Path
) -> None:
    bring(bert)
    with pytest.raises(ArtifactError, match="expected at most 64"):
        bring(bert, version="2", max_context_tokens=65)
    assert {path.name for path in (tmp_path / "models/m").iterdir()} == {".lock", "1"}


def test_what_a_killed_import_left_is_removed(bring: Import, bert: Path, tmp_path: Path) -> None:
    left = tmp_path / "models/m/.importing-dead"
    left.mkdir(parents=True)
    bring(bert)
    assert not left.exists()


def test_two_imports_of_one_model_do_not_mix(bring: Import, bert: Path) -> None:
    def import_within(folder: Path) -> None:
        with pytest.raises(ArtifactError, match="another command is making a version"):
            bring(bert, version="2")

    assert bring(bert, record=import_within).made


def test_a_lock_that_another_import_removed_meanwhile_is_no_lock(
    bring: Import, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_after_it_is_gone(lock: FileLock) -> bool:
        (tmp_path / "models/m/.lock").unlink()
        return True

    monkeypatch.setattr(FileLock, "try_take", take_after_it_is_gone)
    with pytest.raises(ArtifactError, match="another command is making a version"):
        bring(bert)


@pytest.mark.parametrize("field", ["config.json", "tokenizer_config.json"])
def test_remote_code_is_refused(bring: Import, llama: Path, field: str) -> None:
    change(llama / field, auto_map={"AutoModel": "modeling_x.X"})
    with pytest.raises(ArtifactError, match=r"auto_map: .*modeling_x.X"):
        bring(llama)


def test_what_vllm_does_not_run_is_refused_by_name(bring: Import, llama: Path) -> None:
    change(llama / "config.json", architectures=["OddForCausalLM"])
    with pytest.raises(ArtifactError, match="does not run OddForCausalLM"):
        bring(llama)


def test_a_base_model_without_template_is_refused(bring: Import, llama: Path) -> None:
    (llama / "chat_template.jinja").unlink()
    with pytest.raises(ArtifactError, match="no chat template"):
        bring(llama)


def test_no_license_is_no_license(bring: Import, bert: Path) -> None:
    (bert / "README.md").unlink()
    with pytest.raises(ArtifactError, match="say --license"):
        bring(bert)
    assert bring(bert, license="Apache-2.0").manifest.license == "Apache-2.0"


@pytest.mark.parametrize(
    ("text", "license_"),
    [
        ("---\nlicense: other\nlicense_name: gemma\n---\n", "gemma"),
        ("---\nlicense: [mit]\n---\n", None),
        ("---\nlicense: mit\n", None),
        ("---\nlicense: mit\ndate: 2024-13-45\n---\n", "mit"),
        ("---\nlicense: null\n---\n", None),
        ("---\nlicense: [a\n---\n", None),
        ("---\nlicense: " + "[" * 600 + "\n---\n", None),
        ("# no front matter\n", None),
    ],
)
def test_the_cards_license(bring: Import, bert: Path, text: str, license_: str | None) -> None:
    from modelyard.artifacts.importing.card import license_of

    (bert / "README.md").write_text(text)
    assert license_of(bert) == license_


def test_other_pooling_than_the_mean_is_refused(bring: Import, bert: Path) -> None:
    modules = [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (bert / "modules.json").write_text(json.dumps(modules))
    (bert / "1_Pooling").mkdir()
    pooling = bert / "1_Pooling/config.json"
    pooling.write_text(json.dumps({"pooling_mode_cls_token": True}))
    with pytest.raises(ArtifactError, match="pools by its first token"):
        bring(bert)
    pooling.write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    assert bring(bert).manifest.kind is Kind.EMBEDDER
    for path in ("/etc", "../x", None):
        (bert / "modules.json").write_text(json.dumps([modules[0], modules[1] | {"path": path}]))
        with pytest.raises(ArtifactError, match=r"expected a folder like 1_Pooling, got"):
            bring(bert, name="outside")
    (bert / "modules.json").write_text("[" * 5_000)
    with pytest.raises(ArtifactError, match=r"modules.json: not JSON"):
        bring(bert, name="deep")
    dense = [*modules, {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]
    (bert / "modules.json").write_text(json.dumps(dense))
    with pytest.raises(ArtifactError, match="adds a Dense after the encoder"):
        bring(bert, name="dense")


def test_weights_that_are_no_numbers_are_refused(bring: Import, bert: Path) -> None:
    import numpy as np
    from safetensors.numpy import load_file, save_file

    tensors = load_file(bert / "model.safetensors")
    next(iter(tensors.values())).flat[0] = np.nan
    save_file(tensors, bert / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ArtifactError, match=r"(?i)nan"):
        bring(bert)


def test_a_disk_that_is_too_small_is_said_before_a_byte_is_written(
    bring: Import, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 1000))
    words = r"needs .* MB more, and the disk of .* has 0.0 MB free"
    with pytest.raises(ArtifactError, match=words):
        bring(bert)


def test_a_file_that_cannot_be_read_is_named(bring: Import, bert: Path) -> None:
    (bert / "vocab.txt").symlink_to("vocab.txt")
    with pytest.raises(ArtifactError, match=r"vocab.txt: expected a readable file"):
        bring(bert)
    (bert / "vocab.txt").unlink()
    os.mkfifo(bert / "vocab.txt")
    with pytest.raises(ArtifactError, match=r"vocab.txt. is a named pipe: check the file"):
        bring(bert)


def test_a_disk_that_fills_up_meanwhile_is_said(
    bring: Import, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(ArtifactError, match=r"the disk is full .*make room"):
        bring(bert)
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere/at/all", "no such folder or file"),
        ("org/name", "say which revision"),
        ("org/name@", "say which revision"),
        (__file__, "only .gguf is imported"),
    ],
)
def test_a_source_that_is_none(bring: Import, source: str, words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        bring(source)


@pytest.mark.parametrize("options", [{"name": "../m"}, {"name": "M"}, {"version": "a/b"}])
def test_names_become_paths_so_they_are_checked_first(
    bring: Import, bert: Path, options: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(ArtifactError, match=r"--(name|version) "):
        bring(bert, **options)
    assert not (tmp_path / "models").exists()


def test_an_option_of_another_kind_is_refused(bring: Import, bert: Path) -> None:
    with pytest.raises(ArtifactError, match="the manifest: score_kind is for rerankers"):
        bring(bert, score_kind="bi-encoder")


def test_a_context_beyond_the_models_is_refused_by_the_options_name(
    bring: Import, bert: Path
) -> None:
    with pytest.raises(ArtifactError) as refused:
        bring(bert, max_context_tokens=65)
    assert str(refused.value).startswith(
        f"{bert}/config.json: --max-context-tokens: expected at most 64"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_context_tokens": 65}, "--max-context-tokens"),
        ({"min_memory_gb": 0.001}, "^the manifest: device.min_memory_gb"),
        ({"max_output_tokens": 64}, "^the manifest: limits.max_output_tokens"),
    ],
)
def test_no_error_names_the_folder_that_is_built_aside(
    bring: Import, llama: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArtifactError, match=words) as refused:
        bring(llama, **options)
    assert ".importing-" not in str(refused.value)


def test_a_file_that_cannot_be_written_is_not_named_aside(
    bring: Import, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EIO, "Input/output error", str(target))

    monkeypatch.setattr(shutil, "copyfile", refuse)
    with pytest.raises(ArtifactError) as refused:
        bring(bert)
    assert str(refused.value).startswith(f"{tmp_path}/models/m: Input/output error")


def test_only_a_models_own_folders_are_looked_into(
    bring: Import, bert: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    scan = os.scandir
    looked: list[str] = []

    def watched(path: Any) -> Any:
        looked.append(Path(path).name)
        return scan(path)

    (bert / ".venv/lib").mkdir(parents=True)
    (bert / "1_Pooling").mkdir()
    (bert / "1_Pooling/config.json").write_text("{}")
    (bert / ".venv/lib/x.bin").touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", watched)
        made = bring(bert)
    assert not {".venv", "lib"} & set(looked)
    assert (made.folder / "1_Pooling/config.json").is_file()
    (bert / "config.json").unlink()
    with pytest.raises(ArtifactError, match=r"no config.json: not a model folder"):
        bring(bert, name="other")


@pytest.mark.parametrize("option", [{"base": "org/base@main"}, {"tokenizer": Path("x")}])
def test_an_option_of_another_source_is_refused_and_not_ignored(
    bring: Import, bert: Path, option: dict[str, Any]
) -> None:
    with pytest.raises(ArtifactError, match=rf"--{next(iter(option))} is for a "):
        bring(bert, **option)
