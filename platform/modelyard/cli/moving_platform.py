"""A running platform, as the mover of replicas sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol
from urllib.parse import quote

import yaml

from cluster.moves import BoardLoad
from cluster.observe import Unreachable
from modelyard.contract.errors import ConfigError
from modelyard.control.published import FOR_MOVE
from modelyard.rollout.phases import RolloutPhase
from placement.changes import Effect
from placement.guard import Load
from placement.moving import Unseen
from placement.own_changes import others
from placement.plan import Cell
from placement.problem import Packing

# How a later run knows the drains of an earlier one, and `check --live` an app that moves.
REASON: Final = f"{FOR_MOVE} modelyard plan --defrag"
_IN_PROGRESS: Final = frozenset(
    (
        RolloutPhase.SHADOWING,
        RolloutPhase.STEP,
        RolloutPhase.HOLDING,
        RolloutPhase.AWAITING_APPROVAL,
        RolloutPhase.PAUSED,
    )
)


class Apps(Protocol):
    """The part of cluster.moves.LiveApps that is used here."""

    def deploy(self, config: bytes) -> None: ...
    def deployed(self) -> Mapping[str, Mapping[str, Any]]: ...
    def ready(self) -> dict[str, int]: ...
    def ongoing(self, app: str) -> int | None: ...
    def failure(self, app: str) -> str: ...
    def load(self) -> BoardLoad | None: ...


class Admin(Protocol):
    """The part of AdminClient that is used here."""

    def get(self, path: str) -> Any: ...
    def post(self, path: str, body: dict[str, Any]) -> Any: ...
    def delete(self, path: str) -> Any: ...


class Files(Protocol):
    """The Serve config in which the placement is kept."""

    def rendered(self, cells: tuple[Cell, ...], packing: Packing) -> bytes: ...
    def write(self, cells: tuple[Cell, ...], packing: Packing) -> None:
        """Checked first."""


class MovingPlatform:
    """Implements placement.moving.Platform."""

    def __init__(self, apps: Apps, admin: Admin, files: Files, cells: Sequence[Cell]) -> None:
        """cells: as the Serve config has them now."""
        self._apps = apps
        self._admin = admin
        self._files = files
        self._cells = tuple(cells)

    def deploy(self, cells: tuple[Cell, ...], packing: Packing) -> None:
        """The file first: it is the state of the placement, whatever the deploy comes to.

        Raises ConfigError, with the file as it was, where that would deploy somebody's edits too.
        """
        rendered = self._files.rendered(cells, packing)
        self._require_only_ours(rendered, cells)
        self._files.write(cells, packing)
        self._cells = cells
        self._apps.deploy(rendered)

    def _require_only_ours(self, rendered: bytes, cells: Sequence[Cell]) -> None:
        before, after = {cell.app for cell in self._cells}, {cell.app for cell in cells}
        wanted = yaml.safe_load(rendered)["applications"]
        found = others(
            self._apps.deployed(), wanted, arriving=after - before, leaving=before - after
        )
        if any(one.effect is Effect.DELETE for one in found):
            # A run that ended between its file and its deploy drained what the file lacks by now.
            ours = self.drained()
            found = tuple(
                one for one in found if one.effect is not Effect.DELETE or one.app not in ours
            )
        if found:
            what = "; ".join(" ".join(str(one).split()) for one in found)
            raise ConfigError(
                "deploy your edits first, since a move would deploy them with it: the file differs "
                f"from what is deployed in more than this move ({what}); see `check --live`"
            )

    def ready(self) -> dict[str, int]:
        with _looking():
            return self._apps.ready()

    def ongoing(self, app: str) -> int | None:
        with _looking():
            return self._apps.ongoing(app)

    def failure(self, app: str) -> str:
        with _looking():
            return self._apps.failure(app)

    def load(self) -> Load:
        found = self._apps.load()
        if found is None:
            return Load(known=False)
        views = self._admin.get("/admin/rollouts")["rollouts"]
        rollouts = tuple(view["id"] for view in views if view["phase"] in _IN_PROGRESS)
        return Load(found.in_flight, found.slots, found.waiting, rollouts, found.frozen)

    def drain(self, app: str, for_s: float) -> None:
        self._admin.post(
            "/admin/overrides",
            {"kind": "drain", "target": app, "expires_in_s": for_s, "reason": REASON},
        )

    def end_drain(self, app: str) -> None:
        """Ours alone: an operator's own stays."""
        for one in self._drains():
            if one["target"] == app:
                self._admin.delete(f"/admin/overrides/{quote(one['id'], safe='')}")

    def drained(self) -> frozenset[str]:
        """Apps that a move has drained, of an earlier run too."""
        return frozenset(one["target"] for one in self._drains())

    def _drains(self) -> list[dict[str, Any]]:
        overrides = self._admin.get("/admin/overrides")["overrides"]
        return [o for o in overrides if o["kind"] == "drain" and o["reason"] == REASON]


@contextmanager
def _looking() -> Iterator[None]:
    try:
        yield
    except Unreachable as error:
        raise Unseen(str(error)) from error
