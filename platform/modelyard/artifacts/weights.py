"""The weight files of a folder: the headers of its safetensors, never the tensors."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Final

from safetensors import SafetensorError, safe_open

from modelyard.artifacts.json_file import read_object
from modelyard.artifacts.manifest import File, StoredDtype
from modelyard.contract.errors import ArtifactError

SUFFIX: Final = ".safetensors"
INDEX_NAME: Final = "model.safetensors.index.json"
_DTYPES: Final[dict[str, StoredDtype]] = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """dtype: safetensors' name, such as BF16. path: of the file that holds it."""

    dtype: str
    shape: tuple[int, ...]
    path: str

    @property
    def elements(self) -> int:
        return prod(self.shape)


def weight_paths(paths: Iterable[str]) -> list[str]:
    return sorted(path for path in paths if path.lower().endswith(SUFFIX))


def read_tensors(folder: Path, paths: Iterable[str]) -> dict[str, Tensor]:
    """Name, type and shape of every tensor in these files of `folder`.

    safetensors' own reader checks that a header covers its file exactly, so a file that was cut or
    lengthened ends here. Raises ArtifactError for that, for a tensor in two files, for no weights
    at all, and for an index that promises tensors which its files do not hold.
    """
    found: dict[str, Tensor] = {}
    for path in paths:
        for name, tensor in _header(folder, path).items():
            if name in found:
                raise ArtifactError(
                    f"{folder / path}: tensor {name!r} is in {found[name].path} too: which of them "
                    "is loaded depends on the reader: remove one and import the folder again"
                )
            found[name] = tensor
    if not found:
        raise ArtifactError(
            f"{folder}: expected safetensors weights, got none: convert the model's weights "
            "(`modelyard models import`) or fetch it again"
        )
    _require_indexed(folder, found)
    return found


def _header(folder: Path, path: str) -> dict[str, Tensor]:
    try:
        with safe_open(folder / path, framework="np") as stream:
            slices = {name: stream.get_slice(name) for name in stream.keys()}  # noqa: SIM118
            return {
                name: Tensor(part.get_dtype(), tuple(part.get_shape()), path)
                for name, part in slices.items()
            }
    except (SafetensorError, OSError) as error:
        raise ArtifactError(
            f"{folder / path}: expected a whole safetensors file, got {error}: it was cut short or "
            "is of another format: fetch the model again, or convert it"
        ) from error


def _require_indexed(folder: Path, found: Mapping[str, Tensor]) -> None:
    index = folder / INDEX_NAME
    if not index.exists():
        return
    listed = read_object(index).get("weight_map")
    if not isinstance(listed, dict):
        raise ArtifactError(
            f"{index}: weight_map: expected tensor names with their files, got {listed!r}: "
            "fetch the model again"
        )
    for name, path in listed.items():
        if name not in found or found[name].path != path:
            got = found[name].path if name in found else "no such tensor"
            raise ArtifactError(
                f"{index}: expected tensor {name!r} in {path}, got {got}: a part of the weights "
                "is missing or of another model: fetch the model again"
            )


def stored_dtype(tensors: Iterable[Tensor], *, quantised: bool, where: Path) -> StoredDtype:
    """The type of most elements; norms are often kept wider. `quantised`: config.json says so."""
    if quantised:
        return "quantized"
    elements: Counter[str] = Counter()
    for tensor in tensors:
        elements[tensor.dtype] += tensor.elements
    most = elements.most_common(1)[0][0]
    if most not in _DTYPES:
        raise ArtifactError(
            f"{where}: most weights are stored as {most}, expected one of {', '.join(_DTYPES)}: "
            "convert them, or say in config.json how they are quantised (quantization_config)"
        )
    return _DTYPES[most]


def weights_digest(files: Iterable[File]) -> str:
    """`Weights.sha256`: what `sha256sum *.safetensors | sha256sum` prints for these files."""
    held = {file.path: file.sha256 for file in files}
    lines = "".join(f"{held[path]}  {path}\n" for path in weight_paths(held))
    return hashlib.sha256(lines.encode()).hexdigest()
