"""What an operator can ask of control, and what each verb does to the state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from modelyard.config.table import Table
from modelyard.contract.errors import InvalidRequest, NotFound
from modelyard.contract.validate import validated
from modelyard.control.arguments import (
    AddOverride,
    Arguments,
    Release,
    RemoveOverride,
    Revoke,
    SetWeight,
)
from modelyard.control.override_checks import check_override, require_known
from modelyard.control.rollout_states import beside, planned_in, record_of
from modelyard.control.rollout_verbs import ROLLOUT_VERBS, LookOf, Outcome, on_rollout
from modelyard.control.state import (
    By,
    Done,
    State,
    StoredOverride,
    add_override,
    release,
    remove_override,
    revoke,
    set_weight,
)
from modelyard.rollout.commands import set_by_hand

REMEMBERED: Final = 256  # requests whose second coming is recognised


@dataclass(frozen=True, slots=True)
class Command:
    """One verb as it arrives. request: an id of this very call, the same when it is sent again."""

    verb: str
    args: Mapping[str, Any]
    author: str
    request: str

    def digest(self) -> str:
        text = json.dumps([self.verb, dict(self.args), self.author], sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()


def execute(
    state: State,
    command: Command,
    table: Table | None,
    now: float,
    look_of: LookOf | None = None,
) -> tuple[State, Outcome]:
    """The next state and the answer; the same state for a command that was carried out before.

    table: the last good one, None before it, when names cannot be checked. look_of: what is known
    of a rollout now; without it there are no verbs on rollouts. Raises RequestError.
    """
    digest = command.digest()
    for done in state.done:
        if done.request == command.request:
            if done.digest != digest:
                raise InvalidRequest(
                    "this Idempotency-Key was used for another request: send a new one",
                    reason="idempotency_key_reused",
                )
            return state, done.outcome
    if command.verb in ROLLOUT_VERBS and look_of is not None:
        changed, outcome = on_rollout(state, command.verb, command.args, command.author, look_of)
    elif command.verb == "set_weight":
        asked = validated(SetWeight, command.args)
        changed, outcome = _set_weight(state, asked, command, table, now, look_of)
    elif (verb := VERBS.get(command.verb)) is not None:
        model, act = verb
        changed, outcome = act(state, validated(model, command.args), command, table, now)
    else:
        raise NotFound(f"control has no verb {command.verb}", reason="no_verb")
    done = Done(request=command.request, digest=digest, outcome=outcome)
    remembered = (*changed.done, done)[-REMEMBERED:]
    return changed.model_copy(update={"done": remembered}), outcome


def _set_weight(
    state: State,
    args: SetWeight,
    command: Command,
    table: Table | None,
    now: float,
    look_of: LookOf | None,
) -> tuple[State, Outcome]:
    if table is not None and args.rollout not in state.weights:
        known = {route.rollout.id for route in table.routes.values() if route.rollout}
        require_known(args.rollout, known, "rollout", "rollout", "routes")
    if args.finish and 0 < args.percent < 100:
        raise InvalidRequest("a rollout finishes at 0 or at 100 percent", param="percent")
    by = By(command.author, args.reason, now)
    changed = set_weight(state, args.rollout, args.percent, by, finish=args.finish)
    planned = planned_in(table).get(args.rollout)
    record = record_of(state, args.rollout, planned)
    if record is not None:
        look = None if look_of is None else look_of(state, args.rollout)[1]
        changed = beside(changed, set_by_hand(record, args.percent, args.finish, look, by))
    return changed, {
        "rollout": args.rollout,
        "percent": args.percent,
        "finished": args.finish,
        "revision": changed.revision,
    }


def _revoke(
    state: State, args: Revoke, command: Command, table: Table | None, now: float
) -> tuple[State, Outcome]:
    if table is not None:
        require_known(args.key, {key.id for key in table.keys}, "key", "key", "keys")
    changed = revoke(state, args.key, By(command.author, args.reason, now))
    return changed, {"key": args.key, "revoked": True, "revision": changed.revision}


def _add_override(
    state: State, args: AddOverride, command: Command, table: Table | None, now: float
) -> tuple[State, Outcome]:
    check_override(args, table)
    # Of the request, so that the same request again would make the same one.
    identifier = "o-" + hashlib.sha256(command.request.encode()).hexdigest()[:10]
    override = StoredOverride(
        id=identifier,
        kind=args.kind,
        target=args.target,
        value=args.value,
        author=command.author,
        reason=args.reason,
        expires_at=now + args.expires_in_s,
    )
    changed = add_override(state, override, now)
    return changed, {
        "id": identifier,
        "expires_at": override.expires_at,
        "revision": changed.revision,
    }


def _remove_override(
    state: State, args: RemoveOverride, command: Command, table: Table | None, now: float
) -> tuple[State, Outcome]:
    changed = remove_override(state, args.id, now)
    return changed, {"id": args.id, "removed": True, "revision": changed.revision}


def _release(
    state: State, args: Release, command: Command, table: Table | None, now: float
) -> tuple[State, Outcome]:
    changed = release(state)
    return changed, {"held": "", "revision": changed.revision}


_Act: TypeAlias = Callable[[State, Any, Command, Table | None, float], tuple[State, Outcome]]
VERBS: Final[dict[str, tuple[type[Arguments], _Act]]] = {
    "revoke": (Revoke, _revoke),
    "add_override": (AddOverride, _add_override),
    "remove_override": (RemoveOverride, _remove_override),
    "release": (Release, _release),
}
