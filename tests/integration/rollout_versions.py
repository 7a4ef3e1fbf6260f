"""Further versions of a starter model: the same again, one that does not stop, a damaged one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from modelyard.artifacts.manifest import GOLDEN_NAME, read_manifest
from modelyard.artifacts.package import write_manifest
from tests.integration.repackaging import rewrite_weights

DAMAGED_LAYERS: Final = range(14, 18)
# A word of the vocabulary that the model never writes at the end of a turn.
_NEVER: Final = ("<|endoftext|>", 0)


def same(folder: Path) -> None:
    """Nothing changes but the version."""


def chatty(folder: Path) -> None:
    """It knows no end of a turn any more, and writes until its cap."""
    word, number = _NEVER
    _change(folder / "tokenizer_config.json", eos_token=word)
    _change(folder / "generation_config.json", eos_token_id=number)
    _change(folder / "config.json", eos_token_id=number)


def wrong(folder: Path) -> None:
    """Some layers do not look back: "The capital of Kenya is a beautiful place to visit."."""

    def change(tensors: dict[str, Any]) -> None:
        for layer in DAMAGED_LAYERS:
            tensors[f"model.layers.{layer}.self_attn.o_proj.weight"][:] = 0

    rewrite_weights(folder, change)


def make_version(
    source: Path, root: Path, version: str, change: Callable[[Path], None] = same
) -> Path:
    """The folder of a new version under `root`. Without known answers: its author would have
    recorded its own, and passed the self-test with them."""
    manifest = read_manifest(source)
    folder = root / manifest.name / version
    shutil.copytree(source, folder)
    (folder / GOLDEN_NAME).unlink(missing_ok=True)
    change(folder)
    write_manifest(folder, manifest.model_copy(update={"version": version}), ("short",))
    return folder


def _change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
