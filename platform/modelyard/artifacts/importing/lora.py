"""A LoRA adapter merged into its base: W + (alpha / r) B A (Hu et al. 2021), by peft."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError

from modelyard.artifacts.importing.architecture import read_config
from modelyard.artifacts.importing.copying import (
    copy_files,
    file_errors_named,
    model_files,
    require_room,
    selected,
)
from modelyard.artifacts.importing.saving import save_model
from modelyard.artifacts.importing.selection import (
    ADAPTER,
    ADAPTER_CONFIG,
    TOKENIZER,
    TOKENIZER_FILES,
    refuse_pickles,
)
from modelyard.artifacts.json_file import read_object
from modelyard.artifacts.starter.folder import open_modes, remove_noise
from modelyard.artifacts.starter.quiet import quiet_transformers
from modelyard.artifacts.weights import read_tensors, stored_dtype, weight_paths
from modelyard.contract.errors import ArtifactError

# transformers and peft say with each of these that names, shapes or values are not as expected.
_WRONG: Final = (RuntimeError, ValueError, KeyError, TypeError, SafetensorError)


def trained_on(adapter: Path) -> str:
    """What the adapter's config calls its base; empty when it does not say."""
    return str(read_object(adapter / ADAPTER_CONFIG).get("base_model_name_or_path") or "")


def merge(adapter: Path, base: Path, target: Path) -> None:
    """Fill `target` with the merged model: summed in fp32, saved in the base's dtype.

    Needs memory for the base in fp32. The adapter's tokenizer is taken where it brings one. Raises
    ArtifactError for an adapter that is no LoRA or was trained on a model of another shape, and for
    a base that is quantised.
    """
    _require_lora(adapter)
    selection = selected(base)
    config = read_config(base)
    paths = weight_paths(selection.kept)
    if config.record.get("quantization_config") is not None:
        raise ArtifactError(
            f"{base}: a LoRA is not merged into quantised weights: give the base as it was before"
        )
    dtype = stored_dtype(read_tensors(base, paths).values(), quantised=False, where=base)
    require_room(target, sum((base / path).stat().st_size for path in paths))
    with file_errors_named(target):
        sides = [path for path in selection.kept if "safetensors" not in path]
        copy_files(base, sides, target)
        _save_merged(adapter, base, config.architecture, dtype, target)
        if (adapter / TOKENIZER).is_file():
            own = [name for name in TOKENIZER_FILES if (adapter / name).is_file()]
            copy_files(adapter, own, target)
    remove_noise(target)
    open_modes(target)


def _require_lora(adapter: Path) -> None:
    kind = read_object(adapter / ADAPTER_CONFIG).get("peft_type")
    if kind != "LORA":
        raise ArtifactError(f"{adapter}: a {kind} adapter cannot be merged, only a LORA can")
    if not (adapter / ADAPTER).is_file():
        refuse_pickles(model_files(adapter), str(adapter))
        raise ArtifactError(f"{adapter}: there is no {ADAPTER}: give the folder peft saved")
    read_tensors(adapter, [ADAPTER])  # torn or empty: said before the base is loaded


def _save_merged(adapter: Path, base: Path, architecture: str, dtype: str, target: Path) -> None:
    import torch
    import transformers

    try:
        from peft import PeftModel
    except ImportError as error:
        raise ArtifactError(
            "peft is not installed, and it merges LoRA adapters: run `pip install --no-deps "
            "peft==0.21.2`"
        ) from error
    family: Any = getattr(transformers, architecture, None)
    if family is None:
        raise ArtifactError(f"{base}: transformers knows no {architecture}: merge it elsewhere")
    with quiet_transformers():
        options = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
        try:
            model = family.from_pretrained(base, dtype=torch.float32, **options)
        except _WRONG as error:
            raise ArtifactError(
                f"{base}: transformers cannot load it ({_first_line(error)}): fetch it again"
            ) from error
        try:
            with warnings.catch_warnings():
                # Of a tensor that fits nowhere peft only warns, and the merge would lack it.
                warnings.filterwarnings("error", message=".*missing adapter keys")
                adapted: Any = PeftModel.from_pretrained(model, str(adapter))
            merged = adapted.merge_and_unload(safe_merge=True)
        except (*_WRONG, UserWarning) as error:
            raise ArtifactError(
                f"{adapter}: does not fit {base} ({_first_line(error)}): give the base it was "
                f"trained on, {trained_on(adapter) or 'which its config does not name'}"
            ) from error
        save_model(merged.to(getattr(torch, dtype)), base, target)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
