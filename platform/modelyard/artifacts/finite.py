"""Is every weight a number? Read in chunks, as bits, so bf16 needs no torch and no memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from modelyard.contract.errors import ArtifactError

_CHUNK_BYTES: Final = 1 << 22  # of whole elements of any type
_LENGTH_BYTES: Final = 8  # of the header, little endian: the safetensors format


@dataclass(frozen=True, slots=True)
class _Bits:
    """An element is NaN or infinite when all bits of `mask` are set: its exponent (IEEE 754)."""

    unsigned: str
    mask: int


_BITS: Final = {
    "F64": _Bits("<u8", 0x7FF0_0000_0000_0000),
    "F32": _Bits("<u4", 0x7F80_0000),
    "F16": _Bits("<u2", 0x7C00),
    "BF16": _Bits("<u2", 0x7F80),
    "F8_E5M2": _Bits("u1", 0x7C),
    # OCP FP8 E4M3 has no infinity, and one NaN: every bit but the sign set.
    "F8_E4M3": _Bits("u1", 0x7F),
    # A power of two alone, as the scales of MX formats are: 255 is its NaN.
    "F8_E8M0": _Bits("u1", 0xFF),
}


def require_finite(folder: Path, paths: Iterable[str]) -> None:
    """Raise ArtifactError naming the first tensor with a NaN or infinite element, and which one.

    For files whose headers were checked already (`weights.read_tensors`). Types without NaN, the
    integers of quantised weights, are passed over.
    """
    for path in paths:
        with (folder / path).open("rb") as stream:
            length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
            header: dict[str, Any] = json.loads(stream.read(length))
            header.pop("__metadata__", None)
            for name, tensor in header.items():
                bits = _BITS.get(tensor["dtype"])
                if bits is None:
                    continue
                start, end = tensor["data_offsets"]
                stream.seek(_LENGTH_BYTES + length + start)
                element = _first_not_finite(stream, end - start, bits)
                if element is not None:
                    raise ArtifactError(
                        f"{folder / path}: tensor {name!r}: expected finite numbers, got NaN or "
                        f"infinity at element {element} of {tensor['shape']}: the training or the "
                        "conversion went wrong: make the weights again"
                    )


def _first_not_finite(stream: BinaryIO, size_bytes: int, bits: _Bits) -> int | None:
    import numpy as np

    read = 0
    dtype = np.dtype(bits.unsigned)
    mask = np.array(bits.mask, dtype)
    while read < size_bytes:
        data = stream.read(min(_CHUNK_BYTES, size_bytes - read))
        bad = (np.frombuffer(data, dtype) & mask) == mask
        if bad.any():
            return read // dtype.itemsize + int(bad.argmax())
        read += len(data)
    return None
