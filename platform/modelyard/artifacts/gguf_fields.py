"""The fields of a GGUF file, each of the type that it should have.

Every function raises ArtifactError for a field that is of another type: files are damaged, and
converters differ.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from modelyard.contract.errors import ArtifactError

if TYPE_CHECKING:
    from gguf import GGUFReader


def find(reader: GGUFReader, name: str) -> Any:
    """None for a name that the file does not have."""
    held = reader.fields.get(name)
    if held is None:
        return None
    try:
        return held.contents()
    # The library raises whatever its slices and text decoding do for a damaged field.
    except Exception as error:
        raise odd(name, "a readable value", error) from error


def field(reader: GGUFReader, name: str) -> Any:
    """Raises ArtifactError for a name that the file does not have, too."""
    found = find(reader, name)
    if found is None:
        raise ArtifactError(f"the GGUF file has no {name}: convert the model again")
    return found


def odd(name: str, expected: str, got: object) -> ArtifactError:
    return ArtifactError(
        f"the GGUF file's {name}: expected {expected}, got {str(got)[:80]!r}: it is damaged, or of "
        "a converter that is not understood: fetch it again, or import the model's original folder"
    )


def text(reader: GGUFReader, name: str) -> str:
    found = field(reader, name)
    if not isinstance(found, str):
        raise odd(name, "text", found)
    return found


def count(reader: GGUFReader, name: str) -> int:
    found = field(reader, name)
    if isinstance(found, bool) or not isinstance(found, int) or found <= 0:
        raise odd(name, "a positive integer", found)
    return found


def number(reader: GGUFReader, name: str, default: float | None = None) -> float:
    """Positive and finite. default: where the file does not say."""
    found = find(reader, name) if default is not None else field(reader, name)
    if found is None and default is not None:
        return default
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise odd(name, "a number", found)
    if not (isfinite(found) and found > 0):
        raise odd(name, "a positive number", found)
    return found


def texts(reader: GGUFReader, name: str) -> list[str]:
    found = field(reader, name)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise odd(name, "a list of text", type(found).__name__)
    return found


def token_index(reader: GGUFReader, name: str, tokens: int) -> int | None:
    """The id of one of so many tokens; None where the file does not say."""
    found = find(reader, name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < tokens:
        raise odd(name, f"one of {tokens} token ids", found)
    return found
