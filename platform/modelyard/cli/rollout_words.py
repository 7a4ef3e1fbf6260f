"""What a rollout does now, and what comes next, in the words of somebody woken at 3 am."""

from __future__ import annotations

from typing import Any

from modelyard.rollout.phases import OVER

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def span(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 20 min`, `2 d 3 h`: two figures at most, rounded down."""
    whole = max(0, int(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole} s"
    if whole < 2 * _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def head(view: dict[str, Any]) -> str:
    """Phase and weight."""
    step = view["step"]
    of_steps = "" if step is None else f", step {step + 1} of {len(view['steps_percent'])}"
    lasting = f", for {span(view['since_s'])}" if view["phase"] != "Pending" else ""
    return (
        f"rollout {view['id']}: {view['phase']}, {view['percent']:g} % of conversations on the "
        f"canary{of_steps}{lasting}"
    )


def brief(view: dict[str, Any]) -> str:
    """One line, as in `modelyard status`; of one that is over also who ended it, and why."""
    percent = f"{view['percent']:g} % on the canary"
    if not view["in_table"]:
        return f"rollout {view['id']}: ended, {view['phase']}; the table no longer has it"
    if view["phase"] in OVER:
        return f"rollout {view['id']}: {view['phase']}, {percent}, by {author_of(view)}"
    stopped = f" {stop}," if (stop := _stopped(view)) else ""
    return f"rollout {view['id']}:{stopped} {view['phase']}, {percent}{_waits(view, ': ')}"


def outlook(view: dict[str, Any]) -> list[str]:
    """What it waits for and for how long, what happens next, and what stops that."""
    lines = [waits] if (waits := _waits(view)) else []
    if view["phase"] not in OVER and (stop := _stopped(view)):
        lines.append(f"next: NOTHING BY ITSELF, not even a rollback: {stop}. {_release(view)}")
        lines.append(f"otherwise: {_next(view)}")
    else:
        lines.append(f"next: {_next(view)}")
    return lines


def rollback_command(view: dict[str, Any]) -> str:
    return f'modelyard rollout rollback {view["id"]} --reason "..."'


def _waits(view: dict[str, Any], before: str = "") -> str:
    """Control's sentence, and the rest of the hold where that does not say it."""
    words, left_s = view["waits_for"], view["left_s"]
    if not words:
        return ""
    told = left_s is None or words.startswith("the hold")
    return f"{before}waits for {words}" + ("" if told else f"; {span(left_s)} of the hold left")


def _stopped(view: dict[str, Any]) -> str:
    if view["frozen"]:
        by = view["frozen"] if isinstance(view["frozen"], str) else "an override"
        return f"FROZEN by {by}"
    return f"HELD ({view['held']})" if view["held"] else ""


def _release(view: dict[str, Any]) -> str:
    if view["frozen"]:
        return "`modelyard override list` says by whom and until when"
    return "Compare the weight with what you remember, then `DELETE /admin/hold`"


def _next(view: dict[str, Any]) -> str:
    name, phase = view["id"], view["phase"]
    match phase:
        case "Pending":
            start = f"nothing until `modelyard rollout start {name}`"
            return start if view["start"] == "manual" else "it begins when the canary is ready"
        case "Shadowing":
            return (
                f"{view['shadow_percent']:g} % of the stable version's requests are copied; then "
                f"the first step, {view['steps_percent'][0]:g} %"
            )
        case "Step":
            return f"{_following(view)} as soon as the canary has room for it"
        case "Holding":
            return (
                f"{_following(view)} by itself, after the hold and {view['min_samples']} samples, "
                "if no gate fails; a failing one does what its line says"
            )
        case "AwaitingApproval":
            return (
                f'nothing goes up by itself: `modelyard rollout approve {name} --reason "..."` '
                f"does ({_following(view)}); what fails badly is still rolled back"
            )
        case "Paused":
            return (
                f"nothing goes up by itself: `modelyard rollout resume {name}` goes on from here; "
                "what fails is still rolled back"
            )
        case _:
            return _after(view)


def _following(view: dict[str, Any]) -> str:
    """The next weight above the present one, which in `Step` is the one that waits for room."""
    steps = view["steps_percent"]
    higher = [percent for percent in steps if percent > view["percent"]]
    return f"{higher[0]:g} %" if higher else "promoted"


def _after(view: dict[str, Any]) -> str:
    """What is left for a human once it is over."""
    alias, stable, canary = view["alias"], view["stable"], view["canary"]
    match view["phase"]:
        case "Promoted":
            return (
                f"{canary} answers {alias}; write it into the file: `stable: {canary}`, without "
                "canary and rollout"
            )
        case "RolledBack":
            kept = view["kept_for_s"]
            replicas = (
                f"a replica of {canary} stays for {span(kept)} to look at"
                if kept
                else f"{canary} may have no replica any more"
            )
            return (
                f"{stable} answers {alias}; {replicas}. Another try needs another rollout id in "
                "the file"
            )
        case _:
            return f"{stable} answers {alias}; the file no longer has this rollout as it began"


def author_of(view: dict[str, Any]) -> str:
    """Who moved it last, and why."""
    return f"{view['author']}: {view['reason'] or 'no reason given'}"
