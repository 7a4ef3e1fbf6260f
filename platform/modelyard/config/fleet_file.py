"""Reading a fleet spec with its team files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from modelyard.config.checked import parse
from modelyard.config.document import Document, load_document
from modelyard.config.faults import Fault
from modelyard.config.fleet import FLEET_SCHEMA, FleetSpec
from modelyard.config.fleet_document import FleetDocument, with_teams
from modelyard.contract.errors import ConfigError


class FleetFaults(ConfigError):
    """What is wrong with a spec, one line a fault, as `modelyard check` prints it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class FleetFile:
    """A spec, and where each of its parts was read."""

    document: FleetDocument
    spec: FleetSpec


def is_fleet(document: Document) -> bool:
    return document.root.get("schema") == FLEET_SCHEMA


def read_fleet(path: Path) -> FleetFile:
    """A spec whose fields are right; what they say of each other is `config.check`'s.

    Raises DocumentError for a file that is no YAML, FleetFaults for a field at fault.
    """
    document, faults = with_teams(
        load_document(path, kind="a fleet spec", key="schema: modelyard/fleet/v1")
    )
    spec, more = parse(document, FleetSpec, document.root, ())
    if faults or more or spec is None:
        raise FleetFaults([*faults, *more])
    return FleetFile(document, spec)
