"""Make the starter models: skipped when present, built aside, moved into place whole."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from modelyard.artifacts.file_lock import alone_while_there
from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.artifacts.package import write_manifest
from modelyard.artifacts.starter import classifier, embedder, generator, reranker
from modelyard.artifacts.starter.recipe import VERSION, Recipe
from modelyard.artifacts.verify import verify
from modelyard.contract.errors import ArtifactError, ConfigError

RECIPES: Final[tuple[Recipe, ...]] = (
    generator.RECIPE,
    embedder.RECIPE,
    classifier.RECIPE,
    reranker.RECIPE,
)
_ASIDE: Final = ".building-"


@dataclass(frozen=True, slots=True)
class Prepared:
    """One model, ready. `made` is False when the folder was there already."""

    folder: Path
    manifest: Manifest
    made: bool
    seconds: float

    def line(self) -> str:
        figures = "  ".join(f"{name} {value:g}" for name, value in self.manifest.measured.items())
        return (
            f"{'made' if self.made else 'present':<8} {self.manifest.full_name:<30} "
            f"{self.seconds:6.1f} s {self.manifest.size_bytes / 1e6:7.1f} MB  "
            f"{self.manifest.digest()[:8]}  {figures}"
        ).rstrip()


def prepare_all(
    models: Path,
    only: Sequence[str] | None = None,
    report: Callable[[str], None] = print,
    *,
    hashes: bool = False,
) -> list[Path]:
    """Make the starter models that are missing or stale under `models`; answer their folders.

    report gets one line per model. hashes: read every byte of those present, not sizes alone.
    Raises ConfigError for an unknown name in `only`, ArtifactError for a missing source package,
    a full disk, or a model that measured too low.
    """
    folders = []
    for recipe in chosen(only):
        prepared = prepare(models, recipe, hashes=hashes)
        report(prepared.line())
        folders.append(prepared.folder)
    return folders


def chosen(only: Sequence[str] | None) -> tuple[Recipe, ...]:
    names = [recipe.name for recipe in RECIPES]
    for name in only or ():
        if name not in names:
            raise ConfigError(f"no starter model is named {name!r}: choose from {', '.join(names)}")
    return tuple(recipe for recipe in RECIPES if not only or recipe.name in only)


def prepare(models: Path, recipe: Recipe, *, hashes: bool = False) -> Prepared:
    """Make one model at `models`/name/version, or find it there. Safe to run twice at once."""
    started = time.perf_counter()
    folder = folder_of(models, recipe)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone_while_there(folder.parent / ".lock"):
            manifest = present(folder, recipe, hashes=hashes)
            made = manifest is None
            if manifest is None:
                manifest = _make(folder, recipe)
    except OSError as error:
        raise ArtifactError(f"cannot make {recipe.name} in {folder.parent}: {error}") from error
    return Prepared(folder, manifest, made, time.perf_counter() - started)


def folder_of(models: Path, recipe: Recipe) -> Path:
    return models / recipe.name / VERSION


def present(folder: Path, recipe: Recipe, *, hashes: bool = False) -> Manifest | None:
    """The manifest of a folder that is whole and made by today's recipe, else None."""
    try:
        manifest = read_manifest(folder)
        verify(folder, manifest, hashes=hashes)
    except ArtifactError:
        return None
    return manifest if manifest.recipe == recipe.digest() else None


def _make(folder: Path, recipe: Recipe) -> Manifest:
    for left_over in folder.parent.glob(f"{_ASIDE}*"):
        shutil.rmtree(
            left_over
        )  # of a run that was killed: nobody else builds while we hold the lock
    aside = folder.parent / f"{_ASIDE}{secrets.token_hex(4)}"
    aside.mkdir()
    try:
        identity = recipe.build(aside)
        recipe.write_golden(aside)
        manifest = write_manifest(aside, identity.model_copy(update={"recipe": recipe.digest()}))
        _replace(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return manifest


def _replace(new: Path, folder: Path) -> None:
    """Put `new` where `folder` is. A replica that has the old files open keeps them."""
    if folder.exists():
        # rename cannot replace a folder with something in it, so the old one steps aside first.
        old = folder.parent / f"{_ASIDE}old-{secrets.token_hex(4)}"
        os.rename(folder, old)
        os.rename(new, folder)
        shutil.rmtree(old)
    else:
        os.rename(new, folder)
