"""Where control decides which models of a swap area are loaded; Serve and scaling carry it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from modelyard.config.table import Table
from modelyard.control.published import OF_SWAP_AREA, Override, Published
from modelyard.control.reading import Reading
from modelyard.control.report import ControlReport
from modelyard.control.swap_sight import SwapSight
from modelyard.lifecycle.silence import SILENT_S
from modelyard.scaling.area import Moment, Residency, Seen, kept_until
from modelyard.scaling.loading_orders import is_kept, is_shut, waits_s
from modelyard.scaling.residency import step

# Told again each second. Longer than any control is away: what is loaded would unload with the end
# of its floor. What an area no longer has ends with the next word.
LASTS_S: Final = 600.0


class SwapDesk:
    """One per control, and no store: who is loaded, the board knows.

    Without control nothing is loaded into an area: scaling does not follow wishes for its models.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._sight = SwapSight(now())
        self._areas: dict[str, Residency] = {}
        self._moments: dict[str, Moment] = {}
        self._carried: Published | None = None  # an earlier control's word, until the first look
        self._has_looked = False
        self.shown: dict[str, Any] = {}  # each area as an operator sees it; never changed in place

    def answered(self, report: ControlReport) -> None:
        self._sight.answered(report)

    def carry_over(self, word: Published | None) -> None:
        """What an earlier control said of loaded models holds until this one has looked: a word
        without their floors would unload them."""
        if not self._has_looked and self._carried is None:
            self._carried = word

    def read(self, table: Table | None, reading: Reading | None) -> None:
        """Once a second. A board that began just now may not know yet who is loaded, and a replica
        that starts may be silent for SILENT_S. With no table nobody knows the areas."""
        self.carry_over(reading.published if reading is not None else None)
        if table is None:
            return
        areas = table.swap_areas
        self._has_looked |= not areas
        self._areas = {name: self._areas.get(name, Residency()) for name in areas}
        self._moments = {name: one for name, one in self._moments.items() if name in areas}
        self.shown = {name: one for name, one in self.shown.items() if name in areas}
        if not areas or reading is None or reading.up_s < SILENT_S:
            return
        self._has_looked = True
        self._moments = self._sight.moments(areas, self._areas, reading, self._now())
        self._areas = {name: step(self._areas[name], self._moments[name]) for name in areas}
        self.shown = {
            name: _shown(self._areas[name], moment)
            for name, moment in sorted(self._moments.items())
        }

    def overrides(self) -> tuple[Override, ...]:
        """A floor of 1 under a model that is loaded now, a ceiling of 0 over one that is not or
        that goes; what goes gets no requests either."""
        if not self._has_looked and self._carried is not None:
            return tuple(
                replace(one, left_s=LASTS_S)
                for one in self._carried.overrides
                if one.author.startswith(OF_SWAP_AREA)
            )
        return tuple(
            one
            for name, moment in sorted(self._moments.items())
            for model in moment.models.values()
            for one in self._orders(name, self._areas[name], model)
        )

    def loads(self) -> tuple[tuple[str, float], ...]:
        """(version, seconds until it should answer) of those that wait or load."""
        if not self._has_looked and self._carried is not None:
            return self._carried.loads
        return tuple(
            (version, round(seconds, 1))
            for name, moment in sorted(self._moments.items())
            for version, seconds in sorted(waits_s(self._areas[name], moment).items())
        )

    def _orders(self, area: str, known: Residency, one: Seen) -> list[Override]:
        author, now = OF_SWAP_AREA + area, self._now()
        if is_kept(known, one, now):
            left_s = max(kept_until(known, one) - now, LASTS_S)
            return [Override("floor", one.version, 1.0, author, "it is loaded", left_s)]
        made = []
        if is_shut(known, one, now):
            made.append(Override("ceiling", one.version, 0.0, author, "it is not loaded", LASTS_S))
        if one.version in known.leaving:
            reason = "it makes room"
            made += [
                Override("drain", app, None, author, reason, LASTS_S)
                for app in self._sight.apps(one.version)
            ]
        return made


def _shown(known: Residency, moment: Moment) -> dict[str, Any]:
    return {
        "memory_gb": moment.memory_gb,
        "models": {
            version: {
                "memory_gb": one.memory_gb,
                "state": "evicted" if version in known.leaving else str(one.presence),
                "idle_s": round(one.idle_s, 1),
            }
            for version, one in sorted(moment.models.items())
        },
        "waiting": [version for version, _ in known.waiting],
        "loads": known.loads,
        "evictions": known.evictions,
    }
