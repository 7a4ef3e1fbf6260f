"""What a result says in words: the same on the terminal and on the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from modelyard.bench.result import Level, Result

_TAILS: Final = (50, 90, 99)  # the percentiles of the tables


def verdict(result: Result) -> str:
    """The knee, or why there is none; of a single rate, how it went."""
    options, levels = result.options, result.levels
    if len(levels) == 1:
        (level,), percent = levels, levels[0].total.good_percent or 0.0
        return (
            f"{percent:.1f} % of {level.offered_per_s:.2f}/s offered was good. Within the window "
            f"{level.completed_per_s:.2f}/s completed, {level.goodput_per_s:.2f}/s of them good."
        )
    share = f"{options.goodput_percent:g} % of what was offered was good and the server kept up"
    if result.knee_per_s is None:
        return f"No knee: not even at {levels[0].rate_per_s:g}/s {share}."
    if result.knee_per_s == levels[-1].rate_per_s:
        return f"At {result.knee_per_s:g}/s, the highest rate tried, still {share}: no knee seen."
    return f"The knee is at {result.knee_per_s:g}/s, the highest rate up to which {share}."


def warnings(result: Result) -> list[str]:
    """What makes these figures worth less than they look, loudest first."""
    percent = result.options.goodput_percent
    texts = [text for level in result.levels for text in _of_level(level, percent)]
    return texts + _of_run(result)


def _of_level(level: Level, goodput_percent: float) -> Iterator[str]:
    rate = f"At {level.rate_per_s:g}/s"
    if not level.schedule_kept:
        late_ms = level.total.late.p99_ms or 0.0
        yield (
            f"{rate} THE GENERATOR COULD NOT KEEP ITS SCHEDULE: 1 % was sent more than "
            f"{late_ms:.0f} ms late ({level.cpu_cores:.2f} cores used). These figures measure the "
            "client: give it a machine of its own, or use several and merge them"
        )
    if level.interrupted:
        yield f"{rate} it was interrupted: {level.total.unfinished} requests were under way"
    yield from _of_server(level, rate, goodput_percent)
    count = level.total.completed
    if count < 1000:
        yield (
            f"{rate} {count} requests completed: a 99th percentile needs thousands, "
            "so take a longer --duration"
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
        f"{kind} {cause.code} {cause.reason}".rstrip() + f": {cause.count}"
        for kind, every in (("rejected", level.total.rejections), ("error", level.total.errors))
        for cause in every
    ]
