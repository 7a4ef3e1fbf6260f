"""`python -m modelyard.artifacts.importing.convert IN OUT`: pickled weights to safetensors.

A command of its own, and never a step of the import: reading a pickle is a decision to trust its
author. torch reads it with weights_only, which refuses anything but tensors.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

from modelyard.artifacts.importing.architecture import read_config
from modelyard.artifacts.starter.quiet import quiet_transformers
from modelyard.contract.errors import ArtifactError


def convert(source: Path, target: Path) -> None:
    """Write the model and tokenizer of `source` to `target` in the dtype they are stored in.

    Raises ArtifactError when config.json names no architecture that transformers knows, and for a
    pickle that holds more than tensors.
    """
    import transformers

    architecture = read_config(source).architecture
    family: Any = getattr(transformers, architecture, None)
    if family is None:
        raise ArtifactError(f"{source}: transformers knows no {architecture}: convert it elsewhere")
    with quiet_transformers():
        try:
            model = family.from_pretrained(source, dtype="auto", weights_only=True)
        except pickle.UnpicklingError as error:
            raise ArtifactError(
                f"{source}: its pickle holds more than tensors, and loading that runs code: ask "
                "its author for safetensors"
            ) from error
        model.save_pretrained(target)
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(source)
        tokenizer.save_pretrained(target)
    card = source / "README.md"
    if card.is_file():
        (target / card.name).write_bytes(card.read_bytes())


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python -m modelyard.artifacts.importing.convert FOLDER NEW_FOLDER")
    try:
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    except (ArtifactError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
