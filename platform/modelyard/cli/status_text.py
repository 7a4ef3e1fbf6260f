"""The lines of `modelyard status`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cluster.observe import AppView, ReplicaView
from modelyard.cli.rollout_words import brief
from modelyard.cli.serve_message import telling_line
from modelyard.control.published import EVERYTHING, OF_ROLLOUT, Published
from modelyard.control.reading import IngressEntry, Reading
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import START, Phase

CONTROL_SILENT_S: Final = 5.0  # it speaks each second
_DIGEST: Final = 12


def app_lines(apps: list[AppView]) -> list[str]:
    """A line a replica, and one that says what is wrong or why the number is what it is."""
    lines = []
    for view in apps:
        head = f"{view.name:<32} {view.status:<14}"
        for replica in view.replicas:
            lines.append(f"{head} {_replica(replica)}")
            head = " " * len(head)
        if not view.replicas:
            counts = ", ".join(f"{count} {state}" for state, count in view.states.items())
            lines.append(f"{head} {counts}".rstrip())
        if view.ready != view.desired or view.why:
            numbers = f"{view.ready} ready, {view.starting} starting, {view.desired} desired"
            lines.append(f"  {numbers}" + (f": {view.why}" if view.why else ""))
        if view.message and view.status != "RUNNING":
            lines.append(f"  {telling_line(view.message)}")
        lines += _last_failure(view)
    return lines


def board_lines(reading: Reading, rollouts: Sequence[dict[str, Any]] = ()) -> list[str]:
    """The ingresses with their tables, control's last word, and what beats the file.

    rollouts: control's own views; without them the board tells the weights only.
    """
    lines = [_ingress(entry) for entry in reading.ingresses]
    if reading.published is None:
        return [*lines, "control: nothing was ever published"]
    published, age_s = reading.published, reading.published_age_s or 0.0
    silent = " NOT ANSWERING, its last word stays," if age_s > CONTROL_SILENT_S else ""
    word = f"epoch {published.epoch}, revision {published.revision}, {age_s:.0f} s ago"
    lines.append(f"control:{silent} {word}")
    if published.held:
        lines.append(f"  rollouts are HELD: {published.held}")
    lines += _freezes(published)
    return [*lines, *_rollouts(published, {one["id"]: one for one in rollouts}), *_word(published)]


def _freezes(published: Published) -> list[str]:
    """Those that bind rollouts: a version's is scaling's alone."""
    return [
        f"  FROZEN, {'everything' if one.target == EVERYTHING else one.target}: nothing moves by "
        f"itself, no rollback either; by {one.author}: {one.reason}"
        for one in published.overrides
        if one.kind == "freeze" and (one.target == EVERYTHING or one.target.startswith(OF_ROLLOUT))
    ]


def board_record(reading: Reading, rollouts: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The same for `-o json`."""
    published = reading.published
    return {
        "ingresses": [
            {
                "ingress": entry.post.ingress,
                "table_digest": entry.post.table_digest,
                "table_valid": entry.post.table_valid,
                "table_error": entry.post.table_error,
                "in_flight": dict(entry.post.in_flight),
                "waiting": _lanes(entry.post.waiting),
                "running": _lanes(entry.post.running),
                "age_s": entry.age_s,
            }
            for entry in reading.ingresses
        ],
        "control": None if published is None else _control(published, reading.published_age_s),
        "rollouts": list(rollouts),
    }


def _control(published: Published, age_s: float | None) -> dict[str, Any]:
    return {
        "epoch": published.epoch,
        "revision": published.revision,
        "age_s": age_s,
        "held": published.held,
        "weights": dict(published.weights),
        "finished": sorted(published.finished),
        "revoked": sorted(published.revoked),
        "overrides": [
            {
                "kind": one.kind,
                "target": one.target,
                "value": one.value,
                "author": one.author,
                "reason": one.reason,
                "expires_in_s": one.left_s,
            }
            for one in published.overrides
        ],
    }


def _rollouts(published: Published, views: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """A line each: those that the table has, and without control those whose weight is known."""
    for view in views.values():
        if view["in_table"]:
            yield f"  {brief(view)}"
    for rollout, percent in published.weights:
        if rollout not in views:
            over = ", finished" if rollout in published.finished else ""
            yield f"  rollout {rollout}: {percent:g} % on the canary{over}"


def _word(published: Published) -> list[str]:
    lines = []
    for one in published.overrides:
        value = "" if one.value is None else f" {one.value:g}"
        lines.append(
            f"  override {one.kind} {one.target}{value}, for {one.left_s:.0f} s more, "
            f"by {one.author}: {one.reason}"
        )
    if published.revoked:
        lines.append(f"  revoked keys: {', '.join(sorted(published.revoked))}")
    return lines


def _lanes(posted: tuple[tuple[str, str, int], ...]) -> dict[str, dict[str, int]]:
    lanes: dict[str, dict[str, int]] = {}
    for lane, band, count in posted:
        lanes.setdefault(lane, {})[band] = count
    return lanes


def _ingress(entry: IngressEntry) -> str:
    post = entry.post
    requests = sum(count for _, count in post.in_flight)
    table = f"table {post.table_digest[:_DIGEST]}" if post.table_digest else "NO TABLE"
    waiting = sum(count for _, _, count in post.waiting)
    queued = f" ({waiting} of them waiting for a slot)" if waiting else ""
    line = f"ingress {post.ingress}: {table}, {requests} in flight{queued}, {entry.age_s:.1f} s ago"
    if not post.table_valid:
        line += f"; its latest table was REFUSED: {post.table_error.splitlines()[0]}"
    return line


def _replica(replica: ReplicaView) -> str:
    return (
        f"{replica.replica:<10} {replica.phase} {replica.phase_s:.0f} s{_start(replica)}, "
        f"{replica.ongoing} ongoing, pid {replica.pid}"
        + (f", digest {replica.digest8}" if replica.digest8 else "")
        + ("" if replica.probes.liveness else ", NOT LIVE")
        + (f": {_cause(replica.cause_kind, replica.cause)}" if replica.cause else "")
    )


def _last_failure(view: AppView) -> list[str]:
    """Of an app that does not run, when no replica is there to say it itself."""
    failure = view.failure
    shown = any(replica.phase is Phase.FAILED for replica in view.replicas)
    if failure is None or shown or view.status == "RUNNING":
        return []
    words = " ".join(_cause(failure.cause_kind, failure.cause).split())
    return [f"  last failure {failure.age_s:.0f} s ago: {words}"]


def _cause(kind: Cause | None, words: str) -> str:
    """A drained replica's words begin with the kind."""
    return words if kind is None or words.startswith(kind) else f"{kind}: {words}"


def _start(replica: ReplicaView) -> str:
    """How long the start took, and where the time went; of a fetch, how far it is."""
    if replica.phase in (Phase.READY, Phase.DRAINING):
        phases = ", ".join(
            f"{phase} {seconds:.1f}" for phase, seconds in replica.phases if phase in START
        )
        return f", started in {replica.total_s:.1f} s" + (f" ({phases})" if phases else "")
    return f", {fetched_text(replica.fetched)}" if replica.fetched else ""


def fetched_text(fetched: tuple[int, int]) -> str:
    """`120 of 269 MB`. fetched: bytes here, and bytes in all."""
    done, everything = fetched
    return f"{done / 1e6:.0f} of {everything / 1e6:.0f} MB"
