"""How a sentence-transformers folder makes one vector out of a text. Our shell takes the mean."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from modelyard.artifacts.json_file import read_object
from modelyard.contract.errors import ArtifactError

_SERVED_MODULES: Final = frozenset({"Transformer", "Pooling", "Normalize"})
_POOLING_FOLDER: Final = re.compile("[0-9]_Pooling")


def require_mean_pooling(folder: Path, where: str) -> None:
    """Raise ArtifactError for what the embedder's shell would compute differently in silence."""
    for module in _modules(folder / "modules.json"):
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        if kind not in _SERVED_MODULES:
            raise ArtifactError(
                f"{where}: modules.json adds a {kind} after the encoder, and the embedder's shell "
                "has none: choose a model of Transformer, Pooling and Normalize"
            )
        if kind == "Pooling":
            modes = _modes(read_object(folder / _pooling_folder(module, where) / "config.json"))
            if modes != {"mean"}:
                raise ArtifactError(
                    f"{where}: it pools by {' and '.join(sorted(modes)) or 'nothing'}, and the "
                    "embedder's shell takes the mean: choose a model trained with mean pooling"
                )


def _pooling_folder(module: dict[str, Any], where: str) -> str:
    """As sentence-transformers names it, and as the files to keep are selected."""
    path = module.get("path")
    if not isinstance(path, str) or not _POOLING_FOLDER.fullmatch(path):
        raise ArtifactError(
            f"{where}: modules.json: the Pooling's path: expected a folder like 1_Pooling, got "
            f"{path!r}: save the model again with sentence-transformers"
        )
    return path


def longest_sentence(folder: Path) -> int | None:
    """max_seq_length of sentence_bert_config.json; None without one."""
    path = folder / "sentence_bert_config.json"
    limit = read_object(path).get("max_seq_length") if path.is_file() else None
    return limit if isinstance(limit, int) and limit > 0 else None


def _modules(path: Path) -> list[dict[str, Any]]:
    try:
        modules = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path}: not JSON ({error}): fetch the file again") from error
    if not isinstance(modules, list) or not all(isinstance(one, dict) for one in modules):
        raise ArtifactError(f"{path}: expected a list of modules: fetch the file again")
    return modules


def _modes(record: dict[str, Any]) -> set[str]:
    """sentence-transformers writes one flag a mode, and since 5.0 also the name."""
    named = record.get("pooling_mode")
    if isinstance(named, str):
        return {named}
    flags = {name for name, value in record.items() if name.startswith("pooling_mode_") and value}
    names = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "its first token"}
    return {names.get(flag, flag.removeprefix("pooling_mode_")) for flag in flags}
