"""`modelyard check --live`: what a deploy of this file would do to what runs, app by app."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cluster.board import Board
from cluster.observe import Unreachable, connected, read_platform
from cluster.running import Running
from cluster.serve_rest import NOTHING_READ, deployed_by_rest
from modelyard.cli.live_inventory import running_here
from modelyard.config.document import Document, load_document
from modelyard.config.faults import YamlPath
from modelyard.config.shells import INGRESS
from modelyard.config.table import Table, parse_table
from modelyard.contract.errors import ConfigError
from modelyard.control.published import Published
from modelyard.control.reading import Reading
from modelyard.lifecycle.silence import ALIVE_S
from placement.changes import Change, Effect, changes
from placement.live import read_nodes
from placement.parse import cells_of
from placement.refusals import Refusal, refusals
from placement.resources import LABEL
from placement.serving import Platform

LOOK_AGAIN_AFTER_S: Final = ALIVE_S + 1


@dataclass(frozen=True, slots=True)
class LiveCheck:
    """notes: lines of the file that what runs has overtaken. unread: why only Serve's REST was
    asked; empty when the board was read too."""

    changes: tuple[Change, ...]
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...] = ()
    unread: str = ""

    @property
    def ok(self) -> bool:
        return not self.refusals

    def lines(self) -> list[str]:
        lines = [str(change) for change in self.changes]
        lines += [f"REFUSED: {refusal}" for refusal in self.refusals]
        lines += self.notes
        if self.unread:
            lines.append(f"weights and open requests are not known, because {self.unread}")
        return lines

    def as_record(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "changes": [
                {"app": one.app, "effect": one.effect.value, "keys": list(one.keys)}
                for one in self.changes
            ],
            "refusals": [{"app": one.app, "why": one.why} for one in self.refusals],
            "notes": list(self.notes),
            "unread": self.unread,
        }


def check_live(path: Path) -> LiveCheck:
    """Of a file that `check` has passed. Raises ConfigError where nothing runs here."""
    return compared(running_here(), load_document(path))


def compared(running: Running, wanted: Document) -> LiveCheck:
    """Raises Unreachable."""
    deployed = deployed_by_rest(running)
    try:
        with connected(running):
            _, reading = read_platform(Board())
            places = frozenset(node.place for node in read_nodes() if node.alive)
    except Unreachable as error:
        return judged(deployed, wanted, NOTHING_READ, unread=str(error))
    return judged(deployed, wanted, reading, places)


def judged(
    deployed: Mapping[str, Mapping[str, Any]],
    wanted: Document,
    reading: Reading,
    places: Set[str] | None = None,
    *,
    unread: str = "",
) -> LiveCheck:
    """The changes, and those of them that must not be. wanted: a whole Serve config. places: of
    nodes that are alive, None where they are not known."""
    applications = wanted.root["applications"]
    made = changes(deployed, applications)
    dropped = [one.app for one in made if one.effect is Effect.DELETE]
    kept = {app["name"]: _least(app) for app in applications}
    table = _table_of(applications)
    assert table is not None  # `check` has seen it
    platform = Platform(_deployed_table(deployed), None if unread else reading)
    notes = (*_overtaken(wanted, table, reading.published), *_nowhere(wanted, places))
    return LiveCheck(made, refusals(dropped, kept, table, platform), notes, unread)


def _least(app: Mapping[str, Any]) -> int:
    """Replicas that an app of the file always has."""
    deployment: Mapping[str, Any] = next(iter(app.get("deployments") or ()), {})
    scaling = deployment.get("autoscaling_config") or {}
    least = scaling.get("min_replicas", deployment.get("num_replicas"))
    return least if isinstance(least, int) else 1


def _overtaken(wanted: Document, table: Table, published: Published | None) -> Iterator[str]:
    """A finished rollout never starts again: what it decided holds until the file says so too."""
    apps = wanted.root["applications"]
    index = next(i for i, app in enumerate(apps) if app.get("import_path") == INGRESS)
    for alias, route in table.routes.items():
        rollout = route.rollout
        if published is None or rollout is None or rollout.id not in published.finished:
            continue
        at: YamlPath = ("applications", index, "deployments", 0, "user_config", "routes", alias)
        if published.weight(rollout.id) == 100:
            line, do = wanted.line((*at, "stable")), f"write `stable: {route.canary}`"
            words = f"is promoted: {do} and remove canary and rollout"
        else:
            line = wanted.line((*at, "canary"))
            words = "is over: remove canary and rollout, or give a new one another id"
        yield f"{wanted.file}:{line}: rollout {rollout.id} of {alias} {words}"


def _nowhere(wanted: Document, places: Set[str] | None) -> Iterator[str]:
    if places is None:
        return
    for cell in cells_of(wanted.root):
        for place in cell.places:
            if place not in places:
                yield f"{cell.app} would wait for {place}: no alive node has that as {LABEL}"


def require_live(running: Running, path: Path) -> LiveCheck:
    """For `up`, before it deploys. Raises ConfigError with each app that must not be dropped.

    What is refused is looked at once more: a replica that died with its node a moment ago counts as
    ready for ALIVE_S, and a deploy that replaces it must not be refused for that.
    """
    found = compared(running, load_document(path))
    if not found.ok:
        time.sleep(LOOK_AGAIN_AFTER_S)
        found = compared(running, load_document(path))
    if not found.ok:
        lines = "\n".join(str(one) for one in found.refusals)
        raise ConfigError(f"this deploy would drop what is still needed\n{lines}")
    return found


def _deployed_table(deployed: Mapping[str, Mapping[str, Any]]) -> Table | None:
    """None where no ingress is deployed, or one of another release with a table unlike ours."""
    try:
        return _table_of(list(deployed.values()))
    except ConfigError:
        return None


def _table_of(applications: list[Mapping[str, Any]]) -> Table | None:
    for app in applications:
        if app.get("import_path") == INGRESS:
            return parse_table(app["deployments"][0]["user_config"])
    return None
