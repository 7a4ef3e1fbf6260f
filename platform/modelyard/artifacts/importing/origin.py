"""Where a model is imported from: a folder, a hub, a GGUF file, or an adapter and its base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from modelyard.artifacts.importing import gguf_file, lora
from modelyard.artifacts.importing.card import license_of
from modelyard.artifacts.importing.copying import copy_files, model_files, selected
from modelyard.artifacts.importing.hub import HubModel, download, parse_hub
from modelyard.artifacts.importing.selection import ADAPTER_CONFIG, CONFIG, select_adapter
from modelyard.artifacts.manifest import MANIFEST_NAME, read_manifest
from modelyard.artifacts.starter.folder import open_modes
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

Check = Callable[[Path, str], None]


@dataclass(frozen=True, slots=True)
class Filled:
    """source: for the manifest. license: as the source says, or None. notes: a line each, for the
    person who imports."""

    source: str
    license: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Helpers:
    """base: what a LoRA is merged into; --base. tokenizer: of the
    model that a GGUF file was made from; --tokenizer.

    check(folder, where): raises ArtifactError for what no shell can run, before weights are copied.
    check_questions: raises ArtifactError when what is to be recorded cannot be asked of a kind.
    fetch: the folder of an artifact's address.
    """

    check: Check
    check_questions: Callable[[Kind], None]
    fetch: Callable[[str], Path]
    base: str | None = None
    tokenizer: Path | None = None


def fill(source: str, target: Path, helpers: Helpers) -> Filled:
    """Put the files of the model at `source` into `target`. Raises ArtifactError."""
    path = Path(source).expanduser()
    if helpers.tokenizer is not None and (path.is_dir() or path.suffix.lower() != ".gguf"):
        raise ArtifactError(
            f"{source}: --tokenizer is for a .gguf file, and would be ignored: put the tokenizer's "
            "files beside the weights, or leave it out"
        )
    if path.is_dir():
        if _is_adapter(path):
            return _merged(path, f"LoRA adapter {path.resolve().name}", target, helpers)
        return _copied(path, target, helpers)
    if path.is_file():
        return _from_file(path, target, helpers)
    model = parse_hub(source)
    if model is None:
        raise ArtifactError(
            f"{source}: no such folder or file: give a Hugging Face folder, a .gguf file, a LoRA "
            "folder, or org/name@revision of a hub"
        )
    return _from_hub(model, target, helpers)


def _refuse_base(where: str, helpers: Helpers) -> None:
    if helpers.base is not None:
        raise ArtifactError(
            f"{where}: --base is for a LoRA adapter, which has {ADAPTER_CONFIG} and no {CONFIG}: "
            "leave it out, or give the adapter's folder"
        )


def _is_adapter(folder: Path) -> bool:
    return (folder / ADAPTER_CONFIG).is_file() and not (folder / CONFIG).is_file()


def _copied(folder: Path, target: Path, helpers: Helpers) -> Filled:
    selection = selected(folder)
    _refuse_base(str(folder), helpers)
    helpers.check(folder, str(folder))
    copy_files(folder, selection.kept, target)
    open_modes(target)
    return Filled(folder.resolve().name, license_of(folder), _lines(selection.left_line()))


def _from_file(path: Path, target: Path, helpers: Helpers) -> Filled:
    if path.suffix.lower() != ".gguf":
        raise ArtifactError(
            f"{path}: of single files only .gguf is imported: give the folder that the model is in"
        )
    _refuse_base(str(path), helpers)
    helpers.check_questions(Kind.GENERATOR)  # now: dequantising takes minutes
    license_ = gguf_file.write_folder(path, target, helpers.tokenizer)
    helpers.check(target, str(path))
    note = "dequantised to bf16: the precision that the quantisation took does not come back"
    return Filled(path.name, license_, (note,))


def _from_hub(model: HubModel, target: Path, helpers: Helpers) -> Filled:
    snapshot = download(model, lambda folder: _check_download(folder, str(model), helpers))
    source = f"{model.repository}@{snapshot.commit}"
    if _is_adapter(snapshot.folder):
        return _merged(snapshot.folder, source, target, helpers)
    copy_files(snapshot.folder, snapshot.selection.kept, target)
    open_modes(target)
    return Filled(source, license_of(snapshot.folder), _lines(snapshot.selection.left_line()))


def _check_download(folder: Path, where: str, helpers: Helpers) -> None:
    if not _is_adapter(folder):
        _refuse_base(where, helpers)
        helpers.check(folder, where)


def _merged(adapter: Path, source: str, target: Path, helpers: Helpers) -> Filled:
    trained_on = lora.trained_on(adapter) or "a base it does not name"
    if helpers.base is None:
        raise ArtifactError(
            f"{adapter}: this is a LoRA adapter of {trained_on}, and one model is served, not two: "
            "say --base with that model's folder, org/name@revision or artifact to merge them"
        )
    base, base_source = _base(helpers.base, helpers)
    helpers.check(base, str(base))
    lora.merge(adapter, base, target)
    left = select_adapter(model_files(adapter)).left_line()
    note = f"merged into {base_source}; its config says that it was trained on {trained_on}"
    license_ = license_of(adapter) or license_of(base) or _license_of_artifact(base)
    return Filled(f"{source} merged into {base_source}", license_, (note, *_lines(left)))


def _base(base: str, helpers: Helpers) -> tuple[Path, str]:
    path = Path(base).expanduser()
    if path.is_dir():
        return path, path.resolve().name
    if "://" in base:
        return helpers.fetch(base), base
    model = parse_hub(base)
    if model is None:
        raise ArtifactError(
            f"--base {base}: no such folder: give one, org/name@revision, or an artifact's address"
        )
    snapshot = download(model, lambda folder: helpers.check(folder, str(model)))
    return snapshot.folder, f"{model.repository}@{snapshot.commit}"


def _license_of_artifact(folder: Path) -> str | None:
    return read_manifest(folder).license if (folder / MANIFEST_NAME).is_file() else None


def _lines(text: str) -> tuple[str, ...]:
    return (text,) if text else ()
