"""What a result says in words: the same on the terminal and on the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from modelyard.bench.group_record import Cause
from modelyard.bench.result import Level, Result

_TAILS: Final = (50, 90, 99)  # the percentiles of the tables
IDLE_CORES: Final = 0.4  # a generator that is late by its own work uses most of one


def verdict(result: Result) -> str:
    """Of the first rate alone, how it went; of a sweep, the knee or why there is none."""
    texts = [_how_it_went(result.levels[0])] if len(result.levels) == 1 else []
    if len(result.options.rates_per_s) > 1:
        texts += [_knee(result), *_left_out(result)]
    return " ".join(texts)


def _how_it_went(level: Level) -> str:
    if level.stopped_in_warmup:
        return "Stopped during the warm-up: nothing was measured."
    return (
        f"{level.total.good_percent or 0.0:.1f} % of {level.offered_per_s:.2f}/s offered was good. "
        f"Within the window {level.completed_per_s:.2f}/s completed, {level.goodput_per_s:.2f}/s "
        "of them good."
    )


def _knee(result: Result) -> str:
    first, held = result.levels[0], result.highest_held_per_s
    share = (
        f"{result.options.goodput_percent:g} % of what was offered was good and the server kept up"
    )
    if first.stopped_in_warmup:
        return "No knee was looked for."
    if held is None:
        return (
            f"The knee is below {first.rate_per_s:g}/s: not even at {first.rate_per_s:g}/s, "
            f"the first rate, {share}."
        )
    if result.knee_per_s is None:
        return f"At {held:g}/s, the highest rate measured, still {share}: no knee seen."
    return f"The knee is at {held:g}/s, the highest rate up to which {share}."


def _left_out(result: Result) -> Iterator[str]:
    left = len(result.options.rates_per_s) - len(result.levels)
    if not left:
        return
    text = f"{left} higher rate{' was' if left == 1 else 's were'} left out"
    # A run that was stopped would have gone on by itself.
    stopped = result.levels[-1].interrupted
    yield f"{text}: the run was stopped." if stopped else f"{text}: --all-rates measures them too."


def warnings(result: Result) -> list[str]:
    """What makes these figures worth less than they look, loudest first."""
    percent = result.options.goodput_percent
    texts = [text for level in result.levels for text in _of_level(level, percent)]
    return texts + _of_run(result)


def _of_level(level: Level, goodput_percent: float) -> Iterator[str]:
    rate = f"At {level.rate_per_s:g}/s"
    if not level.schedule_kept:
        yield f"{rate} {_late(level)}"
    if level.stopped_in_warmup:
        yield f"{rate} it was stopped during the warm-up: nothing was measured"
        return
    if level.interrupted:
        yield f"{rate} it was interrupted: {level.total.unfinished} requests were under way"
    yield from _of_server(level, rate, goodput_percent)
    count = level.total.completed
    if count < 1000:
        yield (
            f"{rate} {count} requests completed: a 99th percentile needs thousands, "
            "so take a longer --duration"
        )


def _late(level: Level) -> str:
    # All its CPU over the window alone, so that neither warm-up nor drain makes it look idle.
    cores = level.cpu_cores * level.drained_s / level.window_s
    what = "give it a machine of its own, or use several and merge them"
    if cores < IDLE_CORES:
        what = (
            "it used hardly any CPU, so the machine is busy with other work: "
            "wait, or take one that is idle"
        )
    return (
        "THE GENERATOR COULD NOT KEEP ITS SCHEDULE: 1 % was sent more than "
        f"{level.total.late.p99_ms or 0.0:.0f} ms late ({level.cpu_cores:.2f} cores used). "
        f"These figures measure the client: {what}"
    )


def _of_server(level: Level, rate: str, goodput_percent: float) -> Iterator[str]:
    total = level.total
    if not level.kept_up(goodput_percent):
        yield (
            f"{rate} the server did not keep up: {total.under_way_halfway} requests were under way "
            f"halfway through the window, {total.under_way_at_end} at its end, so latencies say "
            "how long it ran"
        )
    failed_percent = 100 * total.failed / max(1, total.failed + total.completed)
    hidden = [percent for percent in _TAILS if failed_percent > 100 - percent]
    if hidden:
        yield (
            f"{rate} {total.failed} requests failed ({failed_percent:.1f} %, timeouts among them) "
            f"and have no latency: p{hidden[0]} and above are of the others only, and too low"
        )
    if total.unmeasured:
        yield (
            f"{rate} {total.unmeasured} streams had no first piece, or many tokens in one piece, "
            "where the SLO bounds ttft or itl: nothing was seen to compare, so they are not good"
        )


def _of_run(result: Result) -> list[str]:
    texts = []
    if result.options.closed_loop_users is not None:
        texts.append(
            f"A closed loop of {result.options.closed_loop_users} users: a slow server got less "
            "load, and latencies leave out the wait of those who could not send"
        )
    if result.options.connections is not None:
        texts.append(
            f"At most {result.options.connections} connections: the wait for one is in the latency"
        )
    return texts


def causes(level: Level) -> list[str]:
    """A line for each cause of rejection and error, the most frequent first."""
    return [
        _cause(kind, cause)
        for kind, every in (("rejected", level.total.rejections), ("error", level.total.errors))
        for cause in every
    ]


def _cause(kind: str, cause: Cause) -> str:
    text = f"{kind} {cause.code} {cause.reason}".rstrip() + f": {cause.count}"
    if cause.message:
        text += f', the server said "{cause.message}"'
    return f"{text}; give one of its keys with --api-key" if cause.code == "401" else text
