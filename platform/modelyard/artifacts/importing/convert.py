"""`python -m modelyard.artifacts.importing.convert IN OUT`: pickled weights to safetensors.

A command of its own, and never a step of the import: reading a pickle is a decision to trust its
author. torch reads it with weights_only, which refuses anything but tensors.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from modelyard.artifacts.importing.architecture import read_config
from modelyard.artifacts.importing.copying import copy_files, model_files
from modelyard.artifacts.importing.saving import save_model
from modelyard.artifacts.importing.selection import CARD, TOKENIZER, is_side_file
from modelyard.artifacts.starter.quiet import quiet_transformers
from modelyard.contract.errors import ArtifactError


def convert(source: Path, target: Path) -> None:
    """Write the model of `source` to `target` in the dtype it is stored in, with the model
    card and every file that an import reads beside the weights, as they are.

    Raises ArtifactError when config.json names no architecture that transformers knows, for a
    pickle that holds more than tensors, and for weights that cannot be read.
    """
    import transformers

    architecture = read_config(source).architecture
    family: Any = getattr(transformers, architecture, None)
    if family is None:
        raise ArtifactError(f"{source}: transformers knows no {architecture}: convert it elsewhere")
    with quiet_transformers():
        save_model(_load(family, source), source, target)
        if not (source / TOKENIZER).is_file():
            tokenizer: Any = transformers.AutoTokenizer.from_pretrained(source)
            tokenizer.save_pretrained(target)
    # After transformers' own, which lack what it does not know: how a sentence is pooled, its
    # length, the keys of other libraries.
    sides = (path for path in model_files(source) if is_side_file(path) or path == CARD)
    copy_files(source, sorted(sides), target)


def _load(family: Any, source: Path) -> Any:
    try:
        return family.from_pretrained(source, dtype="auto", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ArtifactError(
            f"{source}: its pickle holds more than tensors, and loading that runs code: ask "
            "its author for safetensors"
        ) from error
    # What torch and safetensors raise for a file that is torn, empty or of another model.
    except (RuntimeError, ValueError, EOFError, SafetensorError) as error:
        first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ArtifactError(
            f"{source}: its weights cannot be read ({first_line}): fetch the model again"
        ) from error


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python -m modelyard.artifacts.importing.convert FOLDER NEW_FOLDER")
    try:
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    except (ArtifactError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
