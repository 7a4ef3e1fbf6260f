"""Save a model that transformers has loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from modelyard.artifacts.importing.copying import copy_files

_GENERATION: Final = "generation_config.json"


def save_model(model: Any, source: Path, target: Path) -> None:
    """Weights and config.json to `target`, generation_config.json as `source` has it.

    transformers reads a temperature without do_sample, which many models are published with, and
    refuses to write it (ValueError).
    """
    from transformers import GenerationConfig

    own = (source / _GENERATION).is_file()
    if own:
        plain: Any = GenerationConfig
        model.generation_config = plain()
    model.save_pretrained(target)
    if own:
        copy_files(source, [_GENERATION], target)
