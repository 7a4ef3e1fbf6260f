"""What a deploy would change besides the move that it is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from placement.changes import Change, Effect, changes

# How many replicas a cell has is dealt out anew by every step.
_DEALT_OUT: Final = ("min_replicas", "max_replicas", "downscale_to_zero_delay_s")
_SCALING: Final = "autoscaling_config"


def others(
    deployed: Mapping[str, Mapping[str, Any]],
    wanted: Sequence[Mapping[str, Any]],
    *,
    arriving: Set[str],
    leaving: Set[str],
) -> tuple[Change, ...]:
    """deployed: each app's config as Serve has it, by name. wanted: the file's `applications`.
    arriving, leaving: apps that the move adds and drops; of all others it only changes how many
    replicas they have."""
    file = {app["name"]: _without_counts(app) for app in wanted}
    running = {name: _without_counts(app) for name, app in deployed.items()}
    own = {Effect.SAME: running.keys(), Effect.ADD: arriving, Effect.DELETE: leaving}
    made = changes(running, list(file.values()))
    return tuple(one for one in made if one.app not in own.get(one.effect, ()))


def _without_counts(app: Mapping[str, Any]) -> Mapping[str, Any]:
    deployments = [
        {**one, _SCALING: _kept(one[_SCALING])} if one.get(_SCALING) else one
        for one in app.get("deployments") or ()
    ]
    return {**app, "deployments": deployments}


def _kept(scaling: Any) -> Any:
    if not isinstance(scaling, Mapping):
        return scaling
    return {key: value for key, value in scaling.items() if key not in _DEALT_OUT}
