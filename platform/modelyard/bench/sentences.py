"""What a result says in words: the same on the terminal and on the page."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.bench.result import Level, Result


def verdict(result: Result) -> str:
    """The knee, or why there is none; of a single rate, how it went."""
    options, levels = result.options, result.levels
    if len(levels) == 1:
        (level,), percent = levels, levels[0].total.good_percent or 0.0
        return (
            f"{level.goodput_per_s:.2f}/s were good of {level.offered_per_s:.2f}/s offered "
            f"({percent:.1f} %)."
        )
    share = f"{options.goodput_percent:g} % of what was offered was good"
    if result.knee_per_s is None:
        return f"No knee: not even at {levels[0].rate_per_s:g}/s {share}."
    if result.knee_per_s == levels[-1].rate_per_s:
        return f"At {result.knee_per_s:g}/s, the highest rate tried, still {share}: no knee seen."
    return f"The knee is at {result.knee_per_s:g}/s, the highest rate up to which {share}."


def warnings(result: Result) -> list[str]:
    """What makes these figures worth less than they look, loudest first."""
    return [text for level in result.levels for text in _of_level(level)] + _of_run(result)


def _of_level(level: Level) -> Iterator[str]:
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
    count = level.total.completed
    if count < 1000:
        yield (
            f"{rate} {count} requests completed: a 99th percentile needs thousands, "
            "so take a longer --duration"
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
