"""Control's durable state, and every way in which it may change. Pure: the time is passed in.

Times are unix seconds, because they must outlive the process that wrote them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field, ValidationError

from modelyard.config.frozen import Frozen
from modelyard.config.table import Table
from modelyard.contract.errors import ConfigError, InvalidRequest, NotFound
from modelyard.control.published import OF_SWAP_AREA, Override, OverrideKind, Published
from modelyard.control.rollout_states import AUTHOR, published_ids, reconciled, rolled_back
from modelyard.control.weight import Weight
from modelyard.rollout.record import RolloutRecord

SCHEMA: Final = "modelyard/control/v1"
MAX_OVERRIDES: Final = 500
OLDER_THAN_THE_BOARD: Final = (
    "the store was lost or restored from an older copy: this is what the board still held; look at "
    "the weights, then release the hold"
)


class Revocation(Frozen):
    author: str
    reason: str
    at: float


class StoredOverride(Frozen):
    id: str
    kind: OverrideKind
    target: str
    value: float | None
    author: str
    reason: str
    expires_at: float


class Done(Frozen):
    """A verb that was carried out: its request may come twice, and must not act twice."""

    request: str
    digest: str
    outcome: dict[str, str | float | bool | None]


class State(Frozen):
    """What control must not lose. weights and rollouts by rollout id, revoked by key id; done:
    latest last. A rollout's record and its weight change in one write.

    held: why no rollout may move on its own; empty when they may.
    """

    schema_: Literal["modelyard/control/v1"] = Field(default=SCHEMA, alias="schema")
    epoch: int = 0
    revision: int = 0
    weights: dict[str, Weight] = Field(default_factory=dict)
    rollouts: dict[str, RolloutRecord] = Field(default_factory=dict)
    revoked: dict[str, Revocation] = Field(default_factory=dict)
    overrides: tuple[StoredOverride, ...] = ()
    done: tuple[Done, ...] = ()
    held: str = ""

    def changed(self, **changes: object) -> State:
        """A copy with the next revision."""
        return self.model_copy(update=changes | {"revision": self.revision + 1})

    def live_overrides(self, now: float) -> tuple[StoredOverride, ...]:
        return tuple(one for one in self.overrides if one.expires_at > now)

    def encode(self) -> bytes:
        return self.model_dump_json(by_alias=True).encode()


@dataclass(frozen=True, slots=True)
class By:
    """Who changes something, why, and when."""

    author: str
    reason: str
    now: float


def decode(data: bytes) -> State:
    """Raises ConfigError for what another release wrote: guessing could lose a revocation."""
    try:
        return State.model_validate_json(data)
    except ValidationError as error:
        raise ConfigError(
            "control's store holds a state that this release cannot read: run the release that "
            f"wrote it, or move the store away ({error.error_count()} faults)"
        ) from error


def published(
    state: State,
    now: float,
    wishes: tuple[Override, ...] = (),
    shadows: tuple[tuple[str, float], ...] = (),
    table: Table | None = None,
    stored: int | None = None,
) -> Published:
    """The word for the ingresses, as of now. wishes: control's own, of rollouts: made anew for each
    word, and in no store. table: what rollouts ingresses may ask for; None for any. stored: the
    store's revision, None for this one."""
    ids = published_ids(state, table)
    weights = {rollout: w for rollout, w in sorted(state.weights.items()) if rollout in ids}
    overrides = tuple(
        Override(o.kind, o.target, o.value, o.author, o.reason, o.expires_at - now)
        for o in state.live_overrides(now)
    )
    return Published(
        epoch=state.epoch,
        revision=state.revision,
        weights=tuple((rollout, w.percent) for rollout, w in weights.items()),
        revoked=frozenset(state.revoked),
        overrides=overrides + wishes,
        finished=frozenset(rollout for rollout, w in weights.items() if w.finished),
        held=state.held,
        shadows=shadows,
        stored=None if stored == state.revision else stored,
    )


def take_over(state: State, mirror: Published | None, now: float) -> State:
    """The state of a control that starts, with an epoch above every one it can know of.

    mirror: the board's word, None when it has none. Its rollbacks are always believed. Where else
    it says more than the store, the store was lost: the ingresses live by the mirror, so it stays
    in force, and rollouts are held.
    """
    if mirror is None:
        return state.changed(epoch=state.epoch + 1)
    by = By("board", "restored from the board", now)
    weights = {
        rollout: _weight(percent, rollout in mirror.finished, by)
        for rollout, percent in mirror.weights
    }
    ours = [one for one in mirror.overrides if one.author.startswith((AUTHOR, OF_SWAP_AREA))]
    # While a canary has weight there are others of its author; a rolled back one has only this.
    kept_s = {one.author.removeprefix(AUTHOR): one.left_s for one in ours if one.kind == "floor"}
    if mirror.stored_order <= (state.epoch, state.revision):
        ends = {one: weight for one, weight in weights.items() if _turned_back(weight)}
        return rolled_back(state, ends, kept_s, now).changed(epoch=state.epoch + 1)
    later = mirror.epoch, max(mirror.revision, state.revision)
    restored = state.model_copy(update={"epoch": later[0] + 1, "revision": later[1]})
    revoked = {key: _revocation(by) for key in mirror.revoked}
    overrides = tuple(_restored(one, now) for one in mirror.overrides if one not in ours)
    return restored.changed(
        weights=state.weights | weights,
        rollouts=reconciled(state, weights, kept_s, now),
        revoked=revoked | state.revoked,
        overrides=overrides,
        held=OLDER_THAN_THE_BOARD,
    )


def set_weight(state: State, rollout: str, percent: float, by: By, *, finish: bool) -> State:
    """Raises InvalidRequest for a finished rollout: one id never restarts (design decision 7). Only
    `rollback` may take a promoted one from 100 to 0 (`rollout_states.keep`)."""
    if not (math.isfinite(percent) and 0 <= percent <= 100):
        raise InvalidRequest("percent must be from 0 to 100", param="percent")
    held = state.weights.get(rollout)
    if held is not None and held.finished:
        raise InvalidRequest(
            f"the rollout {rollout} finished at {held.percent:g} %: give a new one another id"
            + (", or turn this one back with `rollback`" if held.percent > 0 else ""),
            param="rollout",
            reason="finished",
        )
    return state.changed(weights=state.weights | {rollout: _weight(percent, finish, by)})


def revoke(state: State, key: str, by: By) -> State:
    """A revoked id stays revoked: its holder may have copies. The first revocation is kept."""
    if key in state.revoked:
        return state
    return state.changed(revoked=state.revoked | {key: _revocation(by)})


def add_override(state: State, override: StoredOverride, now: float) -> State:
    """A second one of a kind for a target replaces the first. Raises InvalidRequest when full."""
    others = tuple(
        one
        for one in state.live_overrides(now)
        if (one.kind, one.target) != (override.kind, override.target)
    )
    if len(others) >= MAX_OVERRIDES:
        raise InvalidRequest(f"there are {MAX_OVERRIDES} overrides already: remove some")
    return state.changed(overrides=(*others, override))


def remove_override(state: State, identifier: str, now: float) -> State:
    """Raises NotFound when there is none, or it has expired."""
    live = state.live_overrides(now)
    kept = tuple(one for one in live if one.id != identifier)
    if len(kept) == len(live):
        raise NotFound(f"there is no override {identifier}", param="id", reason="no_override")
    return state.changed(overrides=kept)


def release(state: State) -> State:
    """Rollouts may move again."""
    return state.changed(held="") if state.held else state


def _weight(percent: float, finished: bool, by: By) -> Weight:
    return Weight(percent=percent, finished=finished, author=by.author, reason=by.reason, at=by.now)


def _turned_back(weight: Weight) -> bool:
    return weight.finished and weight.percent == 0


def _revocation(by: By) -> Revocation:
    return Revocation(author=by.author, reason=by.reason, at=by.now)


def _restored(override: Override, now: float) -> StoredOverride:
    return StoredOverride(
        id=f"restored-{override.kind}-{override.target}".replace("/", "-"),
        kind=override.kind,
        target=override.target,
        value=override.value,
        author=override.author,
        reason=override.reason,
        expires_at=now + override.left_s,
    )
