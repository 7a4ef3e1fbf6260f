"""`org/name@revision` of a hub. Where it is (HF_ENDPOINT), tokens, proxies, retries and the cache
of what was downloaded (HF_HOME, resumed after a cut) are huggingface_hub's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from modelyard.artifacts.importing.copying import shards_of
from modelyard.artifacts.importing.selection import (
    ADAPTER_CONFIG,
    CARD,
    CONFIG,
    INDEX,
    Selection,
    select,
    select_adapter,
)
from modelyard.contract.errors import ArtifactError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class HubModel:
    """A repository at a revision: branch, tag or commit."""

    repository: str
    revision: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.revision}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was downloaded: `folder` belongs to the hub's cache. commit: 40 hex digits."""

    folder: Path
    commit: str
    selection: Selection


def parse_hub(source: str) -> HubModel | None:
    """None for what cannot be a hub's name. Raises ArtifactError for a name without revision."""
    repository, at, revision = source.partition("@")
    if not _REPOSITORY.fullmatch(repository):
        return None
    if not at or not revision:
        raise ArtifactError(
            f"{source}: there is no such folder or file here; for a hub's model say which "
            f"revision, since a branch moves: {repository}@<commit, tag or branch>"
        )
    return HubModel(repository, revision)


def download(model: HubModel, check: Callable[[Path], None]) -> Snapshot:
    """Safetensors, JSON, tokenizer and template files; nothing else is fetched.

    check: sees the folder before its weights are there, so that what cannot be served is refused
    before 100 GB of it are fetched. Raises ArtifactError when the hub does not answer, or knows no
    such model or revision.
    """
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    try:
        return _download(HfApi(), model, check)
    except (HTTPError, HFValidationError, OSError) as error:
        first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ArtifactError(
            f"{model}: the hub did not give it ({first_line}): check the name, the revision, "
            "HF_ENDPOINT, and HF_TOKEN for a gated model"
        ) from error


def _download(api: HfApi, model: HubModel, check: Callable[[Path], None]) -> Snapshot:
    info: Any = api.model_info(model.repository, revision=model.revision)
    names = [file.rfilename for file in info.siblings or ()]
    selection = _selection(api, model, info.sha, names)
    small = [path for path in selection.kept if not path.endswith(".safetensors")]
    for patterns in ([*small, CARD], list(selection.kept)):
        folder = api.snapshot_download(model.repository, revision=info.sha, allow_patterns=patterns)
        check(Path(folder))
    return Snapshot(Path(folder), info.sha, selection)


def _selection(api: HfApi, model: HubModel, commit: str, names: list[str]) -> Selection:
    if ADAPTER_CONFIG in names and CONFIG not in names:
        return select_adapter(names)
    shards = None
    if INDEX in names:
        shards = shards_of(Path(api.hf_hub_download(model.repository, INDEX, revision=commit)))
    return select(names, str(model), shards)
