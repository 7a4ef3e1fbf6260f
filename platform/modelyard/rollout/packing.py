"""The evidence of a rollout as bytes."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from modelyard.contract.errors import ModelyardError

_ARRAY: Final = "array"
_MOST_BYTES: Final = 64 * 1024 * 1024  # unpacked: what is larger was not written by us


class UnreadableEvidence(ModelyardError):
    """The bytes are no evidence, or that of another release."""


def pack(state: dict[str, Any]) -> bytes:
    """Arrays are kept bit for bit: a verdict is the same after it."""
    return zlib.compress(json.dumps(state, default=_array).encode(), level=6)


def unpack(data: bytes) -> dict[str, Any]:
    """Raises UnreadableEvidence."""
    try:
        unpacked = zlib.decompressobj().decompress(data, _MOST_BYTES)
        state = json.loads(unpacked, object_hook=_restored)
    except (zlib.error, ValueError, TypeError, KeyError, binascii.Error) as error:
        raise UnreadableEvidence(
            f"a rollout's evidence cannot be read ({error}): begin it anew"
        ) from error
    if not isinstance(state, dict):
        raise UnreadableEvidence("a rollout's evidence is not a mapping: begin it anew")
    return state


def dump(thing: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}


def load(
    thing: object, names: Iterable[str], state: dict[str, Any], resized: Iterable[str] = ()
) -> None:
    """resized: arrays whose shape the caller has looked at.

    Raises UnreadableEvidence where a field is missing, or has another type or shape.
    """
    for name in names:
        new = state.get(name)
        if not _alike(getattr(thing, name), new, name in resized):
            raise UnreadableEvidence(f"a rollout's evidence has no {name}: begin it anew")
        setattr(thing, name, new)


def _alike(old: object, new: object, resized: bool) -> bool:
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        return new.dtype == old.dtype and (resized or new.shape == old.shape)
    return type(new) is type(old)


def _array(value: object) -> object:
    if isinstance(value, np.ndarray):
        raw = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {_ARRAY: raw, "type": value.dtype.str, "shape": list(value.shape)}
    raise TypeError(f"{type(value).__name__} is not for packing")


def _restored(value: dict[str, Any]) -> object:
    if _ARRAY not in value:
        return value
    raw = base64.b64decode(value[_ARRAY], validate=True)
    kind = np.dtype(value["type"])
    if kind.hasobject:
        raise ValueError("an array of objects")
    return np.frombuffer(raw, dtype=kind).reshape(value["shape"]).copy()
