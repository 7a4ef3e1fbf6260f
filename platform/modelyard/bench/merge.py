"""Several runs as one: of generators that shared a load, or of one load repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from modelyard.bench.group_record import TimelineRecord
from modelyard.bench.group_record import merged as merged_groups
from modelyard.bench.result import SCHEMA, Level, Result, highest_held, knee_of
from modelyard.contract.errors import ConfigError

# Keys are named by tenants, which a workload names too; the rates measured are in the levels.
_MAY_DIFFER: Final = {"tenants_with_keys", "rates_per_s", "all_rates"}
_RATES: Final = ("rate_per_s", "to_per_s", "speed")
TOGETHER_SHARE: Final = (
    0.5  # of the shorter run: what begins so far into another did not go with it
)


def merge(results: Sequence[Result]) -> Result:
    """Level by level. Raises ConfigError for runs that cannot be one.

    Levels that ran at the same time add their rates; those that ran one after the other add their
    seconds. Which of both is told from the clock, and said in the notes.
    """
    first, *others = results
    runs = [run for one in results for run in one.runs]
    if len(set(runs)) < len(runs):
        raise ConfigError("one run is given twice: its requests would be counted twice")
    for other in others:
        _check(first, other)
    merged = [
        _merge_levels(levels) for levels in zip(*(one.levels for one in results), strict=True)
    ]
    levels = tuple(level for level, _ in merged)
    together = all(at_once for _, at_once in merged)
    if not together and any(at_once for _, at_once in merged):
        raise ConfigError("some levels ran at the same time and some did not: merge other runs")
    how = "generators at the same time: rates add up" if together else "repeats: seconds add up"
    rates = tuple(level.rate_per_s for level in levels)
    return first.model_copy(
        update={
            "schema_": SCHEMA,
            "options": first.options.model_copy(update={"rates_per_s": rates}),
            "levels": levels,
            "knee_per_s": knee_of(levels, first.options.goodput_percent),
            "highest_held_per_s": highest_held(levels, first.options.goodput_percent),
            "runs": tuple(run for one in results for run in one.runs),
            "notes": (*first.notes, f"merged from {len(results)} runs, {how}"),
        }
    )


def _check(first: Result, other: Result) -> None:
    if len(first.levels) != len(other.levels):
        raise ConfigError(
            f"one run has {len(first.levels)} rates, another {len(other.levels)}: "
            "run both with --all-rates and the same --rate"
        )
    if first.workload.slo != other.workload.slo or _slos(first) != _slos(other):
        raise ConfigError("the runs count goodput against different SLOs: run both with one")
    if first.levels[0].streams.keys() != other.levels[0].streams.keys():
        raise ConfigError("the runs have different streams: merge runs of one workload")
    _check_same(_load(first), _load(other))


def _check_same(first: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    for name in first:
        if first[name] != other[name]:
            raise ConfigError(
                f"the runs differ in {name} ({first[name]} and {other[name]}): "
                "merge runs of one load on one server"
            )


def _load(result: Result) -> dict[str, Any]:
    """What two runs must agree in. Their rates need not: `_merge_levels` looks after those."""
    options = result.options.model_dump(mode="json", exclude=_MAY_DIFFER)
    streams = [_without_rates(stream.model_dump(mode="json")) for stream in result.workload.streams]
    arrivals = result.workload.arrivals
    return options | {
        "arrivals": None if arrivals is None else _without_rates(arrivals.model_dump(mode="json")),
        **{f"stream {stream['name']}": stream for stream in streams},
        "traces": result.traces,
    }


def _without_rates(record: Any) -> Any:
    """Arrivals but for how many: generators share a rate, and repeats of one say it in a level."""
    if isinstance(record, Mapping):
        kept = {name: value for name, value in record.items() if name not in _RATES}
        return {name: _without_rates(value) for name, value in kept.items()}
    if isinstance(record, list | tuple):
        return [_without_rates(value) for value in record]
    return record


def _slos(result: Result) -> list[object]:
    return [stream.slo for stream in result.workload.streams]


def _merge_levels(levels: Sequence[Level]) -> tuple[Level, bool]:
    """The level, and whether they ran at the same time."""
    together = _overlap_s(levels) >= TOGETHER_SHARE * min(one.drained_s for one in levels)
    rates = [level.rate_per_s for level in levels]
    if not together and max(rates) > 1.001 * min(rates):
        raise ConfigError(
            f"rates of {min(rates):g}/s and {max(rates):g}/s ran one after the other: "
            "repeats must have the same rates"
        )
    total = sum if together else max
    streams = {
        name: merged_groups([one.streams[name] for one in levels]) for name in levels[0].streams
    }
    merged = Level(
        rate_per_s=total(rates),
        started_unix_s=min(one.started_unix_s for one in levels),
        window_s=_seconds([one.window_s for one in levels], together),
        drained_s=_seconds([one.drained_s for one in levels], together),
        interrupted=any(one.interrupted for one in levels),
        cpu_cores=total(one.cpu_cores for one in levels),
        total=merged_groups([one.total for one in levels]),
        streams=streams,
        timeline=_timeline([one.timeline for one in levels]),
    )
    return merged, together


def _overlap_s(levels: Sequence[Level]) -> float:
    ends = min(level.started_unix_s + level.drained_s for level in levels)
    return ends - max(level.started_unix_s for level in levels)


def _seconds(values: Sequence[float], together: bool) -> float:
    return max(values) if together else sum(values)


def _timeline(records: Sequence[TimelineRecord]) -> TimelineRecord:
    first, *others = (record.timeline() for record in records)
    try:
        for other in others:
            first.add(other)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return TimelineRecord.of(first)
