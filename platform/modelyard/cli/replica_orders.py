"""Ordering replicas about: one asks, then looks until it has come true."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Protocol
from urllib.parse import quote

from modelyard.contract.errors import ModelyardError
from modelyard.lifecycle.phases import Phase

POLL_S: Final = 1.0
# Its next post brings the order, and three failed health checks of Serve take it out.
OUT_OF_ROUTING_S: Final = 6.0
# The scaling policy sees an override within two seconds; far longer than that, it will not follow.
FOLLOWS_WITHIN_S: Final = 10.0
# A replica that serves takes an order with its next post and holds to it: later the order would
# only be shown of a replica that has gone. Long enough for a board or a control that starts anew.
TAKEN_WITHIN_S: Final = 120.0
# One that starts takes it once it is ready. What nobody carried out in an hour is not meant any
# more.
ORDER_EXPIRES_S: Final = 3600.0


class Platform(Protocol):
    """The part of AdminClient that is used here."""

    def get(self, path: str) -> Any: ...
    def post(self, path: str, body: dict[str, Any]) -> Any: ...
    def delete(self, path: str) -> Any: ...


class NotDone(ModelyardError):
    """An order was refused, or did not come true in time. The text says what is so instead."""


class ReplicaOrders:
    """`within_s` bounds each wait: for a new replica, and for the old one's requests to end."""

    def __init__(
        self,
        platform: Platform,
        within_s: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._platform = platform
        self._within_s = within_s
        self._now = now
        self._sleep = sleep

    def all(self) -> list[dict[str, Any]]:
        replicas: list[dict[str, Any]] = self._platform.get("/admin/replicas")["replicas"]
        return replicas

    def find(self, name: str) -> dict[str, Any]:
        """By its id or a beginning of it that no other has. Raises NotDone."""
        if not name.strip():
            raise NotDone("no replica is named: see `modelyard replicas list`")
        found = [one for one in self.all() if one["replica"].startswith(name)]
        if exact := [one for one in found if one["replica"] == name]:
            return exact[0]
        if len(found) != 1:
            what = "no replica begins" if not found else f"{len(found)} replicas begin"
            which = f" ({', '.join(one['replica'] for one in found)})" if found else ""
            raise NotDone(f"{what} with {name!r}{which}: see `modelyard replicas list`")
        return found[0]

    def drain(self, replica: dict[str, Any], reason: str, *, wait: bool = True) -> None:
        """Tell it to leave, and wait until it has. Raises NotDone."""
        name = replica["replica"]
        body = {"kind": "drain", "target": f"replica:{name}", "reason": reason}
        expires_s = TAKEN_WITHIN_S if replica["ready"] else ORDER_EXPIRES_S
        order = self._platform.post("/admin/overrides", body | {"expires_in_s": expires_s})
        if wait:
            self._wait_until_gone(name)
            self._remove(order["id"])

    def replace(self, replica: dict[str, Any], reason: str) -> str:
        """First one more, then drain. Returns the new one's id. Raises NotDone.

        Serve takes replicas away only after its own delay, so it may start one more in the place of
        the drained one, and end it later.
        """
        app, version = replica["app"], replica["app"].partition("--")[0]
        listed = self._platform.get("/admin/replicas")
        self._require_room(app, version, listed)
        before = {one["replica"] for one in listed["replicas"]}
        ready = [one for one in listed["replicas"] if one["app"] == app and one["ready"]]
        cells = sum(name.partition("--")[0] == version for name in listed["scaling"])
        floor = self._platform.post(
            "/admin/overrides",
            {
                "kind": "floor",
                "target": version,
                "value": float((len(ready) + 1) * cells),  # cells share a floor evenly
                "reason": f"replaces {replica['replica']}: {reason}",
                "expires_in_s": 2 * self._within_s + ORDER_EXPIRES_S,
            },
        )
        try:
            self._wait_for_room(app, len(ready) + 1)
            new = self._wait(
                lambda: self._newcomer(app, before),
                lambda: f"no new replica of {app} became ready",
            )
            self.drain(replica, reason)
        finally:
            self._remove(floor["id"])
        return str(new)

    def _remove(self, override: str) -> None:
        self._platform.delete(f"/admin/overrides/{quote(override, safe='')}")

    def _require_room(self, app: str, version: str, listed: dict[str, Any]) -> None:
        if app not in listed["scaling"]:
            raise NotDone(
                f"{app} has a fixed number of replicas, so there is no room for one more: drain "
                "it, and Serve starts another when it has gone"
            )
        for one in self._platform.get("/admin/overrides")["overrides"]:
            if one["kind"] in ("floor", "freeze", "ceiling") and one["target"] == version:
                raise NotDone(
                    f"{version} has a {one['kind']} by {one['author']} ({one['id']}): remove it "
                    "first, it would decide how many replicas there are"
                )

    def _wait_for_room(self, app: str, wanted: int) -> None:
        """Raises NotDone when the policy, which knows the bounds, asks for fewer."""
        until = self._now() + FOLLOWS_WITHIN_S
        while True:
            scaling = self._platform.get("/admin/replicas")["scaling"].get(app, {})
            if scaling.get("replicas", 0) >= wanted:
                return
            if self._now() >= until:
                raise NotDone(
                    f"{app} has no room for one more replica ({scaling.get('why', 'no word')}): "
                    "raise max_replicas, or drain it and be without it while another starts"
                )
            self._sleep(POLL_S)

    def _newcomer(self, app: str, before: set[str]) -> str | None:
        new = (one for one in self.all() if one["app"] == app and one["replica"] not in before)
        return next((one["replica"] for one in new if one["ready"]), None)

    def _wait_until_gone(self, name: str) -> None:
        last: list[dict[str, Any]] = []

        def gone() -> bool:
            last[:] = [one for one in self.all() if one["replica"] == name]
            return not last

        self._wait(gone, lambda: f"{name} was told to leave and {_still(last[0])}")

    def _wait(self, look: Callable[[], Any], otherwise: Callable[[], str]) -> Any:
        """otherwise: what is so instead, asked when the time is up."""
        until = self._now() + self._within_s
        while not (found := look()):
            if self._now() >= until:
                raise NotDone(f"{otherwise()} after {self._within_s:g} s: see `modelyard status`")
            self._sleep(POLL_S)
        return found


def _still(replica: dict[str, Any]) -> str:
    """What a replica that was told to leave does, from its record in `/admin/replicas`."""
    if replica["ongoing"]:
        return "still works on requests"
    if replica["phase"] == Phase.DRAINING:
        return "has not ended yet, though it works on no request"
    return f"is not out of routing yet (that takes about {OUT_OF_ROUTING_S:g} s)"
