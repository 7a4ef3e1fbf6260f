"""What to do about a version that is not there, or is not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Final

# Written out, since the recipes themselves load what makes a model; a test holds the two together.
STARTER_NAMES: Final = frozenset(
    {"smollm2-135m-instruct", "all-minilm-l6-v2", "support-intent", "minilm-reranker"}
)


def is_of_starter(path: Path) -> bool:
    """Does the path go through a folder with the name of a starter model?"""
    return not STARTER_NAMES.isdisjoint(path.parts)


def no_manifest(folder: Path) -> str:
    """Of a folder without a manifest.json, or of none."""
    if is_of_starter(folder):
        return (
            f"{folder}: there is no such version: `modelyard models prepare` makes the starter "
            "models, `modelyard models import` one of your own"
        )
    if folder.is_dir():
        return (
            f"{folder}: is not a packaged version (it has no manifest.json): make one of the "
            "model in it with `modelyard models import`"
        )
    return (
        f"{folder}: no such folder: check the path, or put a version there with `modelyard models "
        "import` or `modelyard models pull`"
    )


def fetch_again(path: Path) -> str:
    """Of a file of a version that is missing or has other bytes."""
    if is_of_starter(path):
        return "make it again with `modelyard models prepare --verify`"
    return "import or pull it again"
