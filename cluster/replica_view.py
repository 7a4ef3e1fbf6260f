"""One replica, as a driver sees it: by its own posts, and by Serve's details before it posts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from modelyard.config.model_args import StartBudgets
from modelyard.lifecycle.budgets import over_budget
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.probes import Probes
from modelyard.lifecycle.report import Post
from modelyard.lifecycle.silence import is_there

_STARTS: Final = Probes(startup=False, readiness=False, liveness=True)
_STARTING: Final = "STARTING"
_STOPPING: Final = "STOPPING"


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A replica's phase and the seconds in it, by its last post; `age_s` is that post's age.

    total_s: of its start, so far or in all. phases: those done, with their seconds. digest8: of its
    version, empty before it has read the manifest. fetched: bytes here and bytes in all, while it
    fetches. cause_kind: the word that its cause is counted by. stall_after_s: as in ReplicaReport.
    """

    replica: str
    phase: Phase
    phase_s: float
    total_s: float
    ongoing: int
    pid: int
    age_s: float
    cause: str | None
    digest8: str = ""
    phases: tuple[tuple[Phase, float], ...] = ()
    probes: Probes = _STARTS
    fetched: tuple[int, int] | None = None
    cause_kind: Cause | None = None
    stall_after_s: float | None = None

    @property
    def gone(self) -> bool:
        """Silent for longer than one in its phase is."""
        return not is_there(self.phase, self.age_s)


def replica_views(app: Mapping[str, Any], posts: Sequence[Post], now_s: float) -> list[ReplicaView]:
    """Every replica of an app of Serve's details, those that have not posted yet too.

    now_s: Unix time, as Serve's start times are.
    """
    serves = {
        replica["replica_id"]: replica
        for deployment in app["deployments"].values()
        for replica in deployment["replicas"]
        if "replica_id" in replica
    }
    posted = [view_of(post) for post in posts]
    known = {view.replica for view in posted}
    waiting = [
        _scheduled(app, name, replica, now_s)
        for name, replica in serves.items()
        if name not in known and plain(replica["state"]) == _STARTING and _is_model(app)
    ]
    return [_as_serve_says(view, serves.get(view.replica)) for view in posted] + waiting


def view_of(post: Post) -> ReplicaView:
    report, age_s = post.report, post.age_s
    phase_s = report.phase_s + age_s
    started = [seconds for phase, seconds in report.phases if phase is not Phase.READY]
    return ReplicaView(
        replica=report.replica,
        phase=report.phase,
        phase_s=phase_s,
        total_s=sum(started) + (0 if report.started else phase_s),
        ongoing=report.ongoing,
        pid=report.pid,
        age_s=age_s,
        cause=report.cause,
        digest8=report.description.digest8 if report.description else "",
        phases=report.phases,
        probes=Probes.of(report),
        fetched=report.fetched,
        cause_kind=report.cause_kind,
        stall_after_s=report.stall_after_s,
    )


def _as_serve_says(view: ReplicaView, serves: Mapping[str, Any] | None) -> ReplicaView:
    """A replica says itself that it drains, a second later than Serve."""
    stopping = serves is not None and plain(serves["state"]) == _STOPPING
    if not stopping or view.phase is not Phase.READY:
        return view
    return replace(view, phase=Phase.DRAINING, probes=replace(view.probes, readiness=False))


def _scheduled(
    app: Mapping[str, Any], name: str, replica: Mapping[str, Any], now_s: float
) -> ReplicaView:
    """Serve has asked for it, and no process of it has spoken."""
    waited_s = max(0.0, now_s - replica.get("start_time_s", now_s))
    cause = over_budget(Phase.SCHEDULED, waited_s, _budgets(app))
    if cause is not None and (reason := next(_messages(app), "")):
        cause = f"{cause} ({reason})"
    return ReplicaView(
        replica=name,
        phase=Phase.SCHEDULED,
        phase_s=waited_s,
        total_s=waited_s,
        ongoing=0,
        pid=replica.get("pid") or 0,
        age_s=0.0,
        cause=cause,
    )


def _is_model(app: Mapping[str, Any]) -> bool:
    """Only model replicas post: an ingress or control that starts is counted, not shown."""
    return "artifact" in _args(app)


def _budgets(app: Mapping[str, Any]) -> StartBudgets:
    try:
        return StartBudgets.model_validate(_args(app).get("start_budgets") or {})
    except ValidationError:  # the app's own start says what is wrong with them
        return StartBudgets()


def _args(app: Mapping[str, Any]) -> Mapping[str, Any]:
    """An app that Serve has no config of was not deployed by a file."""
    config = app.get("deployed_app_config") or {}
    if not isinstance(config, Mapping):  # the controller answers with its own record
        config = config.model_dump()
    return config.get("args") or {}


def _messages(app: Mapping[str, Any]) -> Iterator[str]:
    """What Serve says of its deployments: the resources that one waits for, for one."""
    for deployment in app["deployments"].values():
        if deployment["message"]:
            yield " ".join(deployment["message"].split())


def plain(state: Any) -> str:
    """The controller answers with enums, its REST with their values."""
    return str(getattr(state, "value", state))
