"""Which files of a published model are its own, and which stay behind."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Final

from modelyard.artifacts.verify import PICKLE_SUFFIXES
from modelyard.contract.errors import ArtifactError

CONFIG: Final = "config.json"
TOKENIZER: Final = "tokenizer.json"
WEIGHTS: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"
CARD: Final = "README.md"
ADAPTER_CONFIG: Final = "adapter_config.json"
ADAPTER: Final = "adapter_model.safetensors"

# What an engine or transformers reads of a tokenizer, besides tokenizer.json itself.
TOKENIZER_FILES: Final = (
    TOKENIZER,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "chat_template.jinja",
    "chat_template.json",
)
_SERVED: Final = (
    CONFIG,
    "generation_config.json",
    *TOKENIZER_FILES,
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "[0-9]_Pooling/config.json",
)
# Below the top only 1_Pooling and such are a model's own: `import .` need not read a whole .venv.
_SUBFOLDER: Final = "[0-9]_*"
_TRAINING: Final = ("optimizer*", "scheduler*", "rng_state*", "training_args*", "scaler*")


@dataclass(frozen=True, slots=True)
class Selection:
    """Relative posix paths. `left` are not served: images, other formats, training state."""

    kept: tuple[str, ...]
    left: tuple[str, ...]

    def left_line(self, shown: int = 8) -> str:
        """One line that names what is left behind; empty when nothing is."""
        if not self.left:
            return ""
        more = len(self.left) - shown
        tail = f" and {more} more" if more > 0 else ""
        return f"left behind, serving does not need them: {', '.join(self.left[:shown])}{tail}"


def is_model_folder(name: str) -> bool:
    """Is this subfolder of a model looked into?"""
    return fnmatch(name, _SUBFOLDER)


def is_side_file(path: str) -> bool:
    """A config or tokenizer file that goes with the weights."""
    return any(
        fnmatch(path, pattern) and path.count("/") == pattern.count("/") for pattern in _SERVED
    )


def select(paths: Collection[str], where: str, shards: Collection[str] | None = None) -> Selection:
    """The files to keep of a folder that holds `paths`.

    shards: the weight files that the index names, where there is one. Raises ArtifactError for
    weights that are not safetensors, and for a folder without config.json or tokenizer.json.
    """
    if CONFIG not in paths:
        raise ArtifactError(
            f"{where}: no {CONFIG}: not a model folder: give the one that `save_pretrained` wrote, "
            "or a .gguf file"
        )
    weights = _weights(paths, where, shards)
    if TOKENIZER not in paths:
        raise ArtifactError(
            f"{where}: there is no {TOKENIZER}: write one with "
            '`python -c "import sys, transformers as t; '
            't.AutoTokenizer.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])" FOLDER`'
        )
    kept = weights | {path for path in paths if is_side_file(path)}
    return Selection(tuple(sorted(kept)), tuple(sorted(set(paths) - kept)))


def select_adapter(paths: Collection[str]) -> Selection:
    """The files that a merge reads of a LoRA folder."""
    kept = set(paths) & {ADAPTER_CONFIG, ADAPTER, *TOKENIZER_FILES}
    return Selection(tuple(sorted(kept)), tuple(sorted(set(paths) - kept)))


def _weights(paths: Collection[str], where: str, shards: Collection[str] | None) -> set[str]:
    if INDEX in paths:
        missing = sorted(set(shards or ()) - set(paths))
        if missing:
            raise ArtifactError(
                f"{where}: {INDEX} names {missing[0]}, which is not there: fetch the model again"
            )
        return {INDEX, *(shards or ())}
    if WEIGHTS in paths:
        return {WEIGHTS}
    others = sorted(path for path in paths if path.endswith(".safetensors") and "/" not in path)
    if others:
        raise ArtifactError(
            f"{where}: no {INDEX} says how {others[0]} is to be read: rename it {WEIGHTS} if it "
            "is the whole model"
        )
    refuse_pickles(paths, where)
    raise ArtifactError(
        f"{where}: there are no weights in it: give a folder with {WEIGHTS}, or a .gguf file"
    )


def refuse_pickles(paths: Collection[str], where: str) -> None:
    """Raise ArtifactError naming the first pickle, with the command that converts it."""
    for path in sorted(paths):
        name = PurePosixPath(path).name
        if PurePosixPath(path).suffix.lower() in PICKLE_SUFFIXES and not any(
            fnmatch(name, pattern) for pattern in _TRAINING
        ):
            raise ArtifactError(
                f"{where}: {path} can run code when it is loaded, and only safetensors is served: "
                "convert it, where its author is trusted, with `python -m "
                "modelyard.artifacts.importing.convert FOLDER NEW_FOLDER`, and import that"
            )
